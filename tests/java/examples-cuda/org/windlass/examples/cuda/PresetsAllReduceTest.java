// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.gpu.CudaDriver;

/**
 * The example without a driver, and through stand-ins for NVIDIA's driver and runtime, which the
 * presets' own natives call.
 */
@Tag("devices")
@Timeout(120)
class PresetsAllReduceTest {
  private static final Path CORE = Path.of(System.getProperty("windlass.root"), "java/core/target");
  private static final Path BUILD = CORE.resolve("cmake/sim");

  @TempDir Path folder;

  private record End(int status, String said) {}

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 8})
  void sumsWhatThePresetsHaveOnTheDevice(int ranks) throws Exception {
    Path library = BUILD.resolve("tests/native/libwindlass-cuda.so");
    Assumptions.assumeTrue(
        Files.exists(library),
        "no " + library + ": it is built with the natives of x86-64, where tests are");
    Files.copy(library, folder.resolve("libwindlass-cuda.so"));
    try (var natives = Files.walk(CORE.resolve("native"))) {
      Path binding =
          natives.filter(file -> file.endsWith("libjniwindlass.so")).findFirst().orElseThrow();
      Files.copy(binding, folder.resolve(binding.getFileName()));
    }
    End end = run(folder.toString(), BUILD.resolve("cuda_stand_in"), "" + ranks);
    assertThat(end.said()).contains(ranks + " ranks, 1048576 sums equal the golden ones");
    assertThat(end.status()).as(end.said()).isZero();
  }

  @Test
  void saysWhatItLacksWithoutADriver() throws Exception {
    Assumptions.assumeTrue(CudaDriver.problem().isPresent(), "there is a driver");
    End end = run(System.getProperty("org.windlass.library.path"), null);
    assertThat(end.said())
        .startsWith("this example takes an NVIDIA GPU: target cuda is not available here: ")
        .contains("libcuda.so.1, does not open");
    assertThat(end.status()).as(end.said()).isEqualTo(3);
  }

  @ParameterizedTest
  @ValueSource(strings = {"x", "0", "-1", "65"})
  void saysThatThereAreNoSuchRanks(String ranks) throws Exception {
    End end = run(System.getProperty("org.windlass.library.path"), null, ranks);
    assertThat(end.said()).startsWith("the number of ranks is \"" + ranks + "\"; give one from 1");
    assertThat(end.status()).as(end.said()).isEqualTo(2);
  }

  /** The example in a process of its own. {@code standIns}: where they lie; null: none. */
  private End run(String natives, Path standIns, String... arguments) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.add("--enable-native-access=ALL-UNNAMED");
    command.add("-Dorg.windlass.library.path=" + natives);
    command.add("-Dorg.bytedeco.javacpp.cachedir=" + folder.resolve("javacpp"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.add(PresetsAllReduce.class.getName());
    command.addAll(List.of(arguments));
    Path output = folder.resolve("output");
    ProcessBuilder builder = new ProcessBuilder(command);
    if (standIns != null) {
      builder.environment().put("LD_LIBRARY_PATH", standIns.toString());
      // JavaCPP takes the runtime of a toolkit before what that names.
      builder.environment().put("LD_PRELOAD", standIns.resolve("libcudart.so.13").toString());
    }
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(90, TimeUnit.SECONDS)).as(Files.readString(output)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    return new End(process.exitValue(), Files.readString(output));
  }
}
