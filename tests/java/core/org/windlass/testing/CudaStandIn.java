// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/**
 * Programs of tests on target cuda through the stand-in for NVIDIA's driver, whose devices run
 * kernels as sim: the host side as it is beside GPUs.
 */
public final class CudaStandIn {
  private static final Path BUILD = Path.of("target").toAbsolutePath();
  private static final Path SIM = BUILD.resolve("cmake/sim");

  private CudaStandIn() {}

  /**
   * What {@code main} says, which ends with status 0.
   *
   * @param folder for its natives
   * @param devices how many GPUs there are
   * @param hasAllMemory whether all memory lies on them, that of hosts too
   */
  public static String run(
      Path folder, int devices, boolean hasAllMemory, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    Path cuda = SIM.resolve("tests/native/libwindlass-cuda.so");
    Assumptions.assumeTrue(
        Files.exists(cuda),
        "no " + cuda + ": it is built with the natives of x86-64, where tests are");
    copy(cuda, folder);
    copy(SIM.resolve("libwindlass.so"), folder);
    try (var natives = Files.walk(BUILD.resolve("native"))) {
      copy(
          natives.filter(file -> file.endsWith("libjniwindlass.so")).findFirst().orElseThrow(),
          folder);
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx512m", "-XX:+UseSerialGC"));
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"));
    command.add("--enable-native-access=ALL-UNNAMED");
    command.add("-Dorg.windlass.library.path=" + folder);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    Path output = Files.createTempFile(folder, "output", null);
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("WINDLASS_TARGET", "cuda");
    builder.environment().put("LD_LIBRARY_PATH", SIM.resolve("cuda_stand_in").toString());
    builder.environment().put("WINDLASS_STAND_IN_DEVICES", String.valueOf(devices));
    if (hasAllMemory) {
      builder.environment().put("WINDLASS_STAND_IN_MEMORY", "devices");
    }
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(120, TimeUnit.SECONDS)).as(Files.readString(output)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    String said = Files.readString(output);
    assertThat(process.exitValue()).as(said).isZero();
    return said;
  }

  private static void copy(Path library, Path folder) throws IOException {
    Path copy = folder.resolve(library.getFileName());
    if (!Files.exists(copy)) {
      Files.copy(library, copy);
    }
  }
}
