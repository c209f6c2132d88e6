// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.TestFile;

/** A disk of one MiB is too small: status 7, and what was there is all that is there. */
class FullDiskTest {
  @TempDir Path folder;

  private Path disk;
  private boolean mounted;

  @BeforeEach
  void mount() throws Exception {
    disk = Files.createDirectory(folder.resolve("disk"));
    mounted = run("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk.toString());
    assumeTrue(mounted, "a small file system takes the right to mount one");
  }

  @AfterEach
  void unmount() throws Exception {
    if (mounted) {
      assertThat(run("umount", disk.toString())).isTrue();
    }
  }

  private static boolean run(String... command) throws IOException, InterruptedException {
    return new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start()
            .waitFor()
        == 0;
  }

  private Path in(String name, int rows) throws IOException {
    Path path = folder.resolve(name);
    TestFile.Tensor tensor =
        new TestFile.Tensor("w", DType.U8, new int[] {rows, 1024}, new long[rows * 1024]);
    TestFile.write(path, List.of(tensor), Map.of());
    return path;
  }

  private List<String> names() throws IOException {
    try (Stream<Path> all = Files.walk(disk)) {
      return all.map(path -> disk.relativize(path).toString()).sorted().toList();
    }
  }

  private void full(Object... arguments) throws IOException {
    List<String> before = names();
    Cli failed = Cli.run(arguments);
    assertThat(failed.status()).as(failed.err()).isEqualTo(7);
    assertThat(failed.err())
        .startsWith("windlass: Resource: ")
        .contains(disk + "/", "No space left on device", "hint: make room")
        .doesNotContain(".windlass-", ".tmp")
        .hasLineCount(2);
    assertThat(names()).isEqualTo(before);
  }

  @Test
  void stampsThatFindNoRoomLeaveWhatWasThere() throws IOException {
    Path stamps = Files.writeString(disk.resolve("ops.csv"), "those of before");
    Files.write(disk.resolve("other"), new byte[(1 << 20) - (4 << 10)]);
    full("bench", "barrier", "--seconds", "0.05", "--ops-csv", stamps);
    assertThat(stamps).hasContent("those of before");
  }

  @Test
  void aFullDiskIsStatusSevenAndNothingIsLeft() throws IOException {
    Path large = in("large.safetensors", 1500);
    full("reshard", "--from", "1:R", "--to", "1:R", large, disk.resolve("x.safetensors"));
    // The first of the rank files fits, the next does not.
    full("reshard", "--from", "1:R", "--to", "3:S0", large, disk.resolve("out"));
  }

  @Test
  void whatStandsThereStays() throws IOException {
    Path out = disk.resolve("out");
    Path small = in("small.safetensors", 600);
    assertThat(Cli.run("reshard", "--from", "1:R", "--to", "2:S0", small, out).status()).isZero();
    byte[] before = Files.readAllBytes(out.resolve("rank-00001.safetensors"));
    full("reshard", "--from", "1:R", "--to", "2:S0", small, out, "--force");
    assertThat(Files.readAllBytes(out.resolve("rank-00001.safetensors"))).isEqualTo(before);
  }
}
