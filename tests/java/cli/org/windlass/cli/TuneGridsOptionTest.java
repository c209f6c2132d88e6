// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.gpu.CudaGrids;
import org.windlass.kernel.Target;
import picocli.CommandLine;

/** What --tune-grids refuses before anything is measured. */
class TuneGridsOptionTest {
  @TempDir Path folder;

  private Path file;
  private TuneGridsOption option;

  @BeforeEach
  void give() {
    file = folder.resolve("grids");
    option = new TuneGridsOption();
    assertThat(option.isGiven()).isFalse();
    CommandLine.populateCommand(option, "--tune-grids", file.toString());
    assertThat(option.isGiven()).isTrue();
  }

  @AfterEach
  void goByNone() {
    CudaGrids.useVariable();
  }

  private void require() {
    option.require(Target.CUDA, "device", "auto", false);
  }

  @Test
  void takesWhatIsNotThereOrATable() throws Exception {
    assertThatCode(this::require).doesNotThrowAnyException();
    Files.writeString(file, "windlass-cuda-grids 1\nend 0\n");
    assertThatCode(this::require).doesNotThrowAnyException();
  }

  @Test
  void refusesToReplaceAnythingElse() throws Exception {
    for (String other : new String[] {"", "{}", "windlass-cuda-grids 2\nend 0\n", "\0"}) {
      Files.writeString(file, other);
      assertThatThrownBy(this::require)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining(file + " exists and is not a table of grids, so it is not replaced");
      assertThat(file).hasContent(other);
    }
    Files.writeString(file, "\n".repeat((1 << 20) + 1));
    assertThatThrownBy(this::require).hasMessageContaining("it has more than 1048576 bytes");
    Files.delete(file);
    Files.createDirectory(file);
    assertThatThrownBy(this::require).hasMessageContaining(file + " is no regular file");
  }

  /** None of them is opened: a pipe that nobody writes would keep who reads it for ever. */
  @Test
  @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void refusesPipesAndDevices() throws Exception {
    Process made = new ProcessBuilder("mkfifo", file.toString()).start();
    assertThat(made.waitFor()).isZero();
    refusesAsIrregular(file);
    for (String device : new String[] {"/dev/zero", "/dev/null"}) {
      option = new TuneGridsOption();
      CommandLine.populateCommand(option, "--tune-grids", device);
      refusesAsIrregular(Path.of(device));
    }
  }

  private void refusesAsIrregular(Path named) {
    assertThatThrownBy(this::require)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(named + " is no regular file");
  }

  @Test
  void refusesWhatNoTableIsOf() {
    assertThatThrownBy(() -> option.require(Target.SIM, "device", "auto", false))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("it takes --target cuda");
    assertThatThrownBy(() -> option.require(Target.CUDA, "plain", "auto", false))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("--buffers plain: ");
    assertThatThrownBy(() -> option.require(Target.CUDA, "device", "ring", false))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("--algorithm ring: ");
    assertThatThrownBy(() -> option.require(Target.CUDA, "device", "auto", true))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("--ops-csv: ");
  }
}
