// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.cli.ChildCommand;
import org.windlass.cli.Cli;
import org.windlass.testing.SafetensorsBytes;

/**
 * A reshard on target cuda through the stand-in for NVIDIA's driver, whose devices run kernels as
 * sim: what it writes and says is what one on sim does.
 */
@Tag("devices")
@Timeout(300)
class DeviceReshardTest {
  private static final long LIMIT_S = 120;
  private static final int ROWS = 3000;
  private static final int COLUMNS = 500;

  /** The core module's build. */
  private static final Path CORE = Path.of("../core/target").toAbsolutePath().normalize();
  private static final Path BUILD = CORE.resolve("cmake/sim");

  @TempDir Path folder;

  private Path natives;

  @BeforeEach
  void gatherNatives() throws IOException {
    Path cuda = BUILD.resolve("tests/native/libwindlass-cuda.so");
    Assumptions.assumeTrue(
        Files.exists(cuda),
        "no " + cuda + ": it is built with the natives of x86-64, where tests are");
    natives = Files.createDirectory(folder.resolve("natives"));
    copy(cuda);
    copy(BUILD.resolve("libwindlass.so"));
    try (var found = Files.walk(CORE.resolve("native"))) {
      copy(found.filter(file -> file.endsWith("libjniwindlass.so")).findFirst().orElseThrow());
    }
  }

  private void copy(Path library) throws IOException {
    Files.copy(library, natives.resolve(library.getFileName()));
  }

  @ParameterizedTest(name = "{0} GPUs, launched as {1}, {2}")
  @CsvSource({"1,threads,direct", "3,threads,staged", "2,processes,direct", "1,processes,staged"})
  void itWritesAndSaysWhatOneOnSimDoes(int devices, String launch, String mode) throws Exception {
    Path in = Files.createDirectory(folder.resolve("in"));
    for (int rank = 0; rank < 2; rank++) {
      write(in.resolve("rank-0000" + rank + ".safetensors"), rank);
    }
    List<Object> asked =
        List.of("reshard", "--from", "2:P", "--to", "1x3:R,S1", "--dtype", "bf16", "--mode", mode,
            "--verify", "--json", in);
    List<Object> onSim = new ArrayList<>(asked);
    onSim.add(folder.resolve("sim"));
    Cli expected = Cli.run(onSim.toArray());
    assertThat(expected.status()).as(expected.err()).isZero();

    List<Object> onGpus = new ArrayList<>(asked);
    onGpus.addAll(List.of(folder.resolve("cuda"), "--target", "cuda", "--launch", launch));
    String said = run(0, devices, onGpus);
    String times = "\"(seconds|GBps|floor_s)\":[^,]*,";
    assertThat(said.replaceAll(times, "")).isEqualTo(expected.out().replaceAll(times, ""));
    TwoProcesses.assertSame(folder.resolve("cuda"), folder.resolve("sim"));
  }

  @Test
  void withoutADriverItSaysSoAndLeavesNothing() throws Exception {
    write(folder.resolve("in.safetensors"), 0);
    Path out = folder.resolve("out");
    List<Object> asked =
        List.of("reshard", "--from", "1:R", "--to", "2:S0", folder.resolve("in.safetensors"), out,
            "--target", "cuda");
    assertThat(run(3, 0, asked))
        .contains("Unsupported: target cuda is not available here: NVIDIA's driver, libcuda.so.1");
    assertThat(out).doesNotExist();
  }

  /** One tensor of random finite f32. */
  private static void write(Path path, long seed) throws IOException {
    byte[] data = new byte[4 * ROWS * COLUMNS];
    new Random(seed).nextBytes(data);
    for (int i = 3; i < data.length; i += 4) {
      data[i] = (byte) (data[i] & 0x80 | 0x3f);
    }
    SafetensorsBytes.write(
        path,
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[" + ROWS + "," + COLUMNS + "],\"data_offsets\":[0,"
            + data.length + "]}}",
        data);
  }

  /** What the command says, which ends with {@code status}, beside so many GPUs; 0: no driver. */
  private String run(int status, int devices, List<Object> arguments) throws Exception {
    Path output = folder.resolve("output");
    ProcessBuilder builder = ChildCommand.withNatives(natives.toString(), arguments.toArray());
    if (devices > 0) {
      builder.environment().put("LD_LIBRARY_PATH", BUILD.resolve("cuda_stand_in").toString());
      builder.environment().put("WINDLASS_STAND_IN_DEVICES", String.valueOf(devices));
    }
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(LIMIT_S, TimeUnit.SECONDS)).as(Files.readString(output)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    String said = Files.readString(output);
    assertThat(process.exitValue()).as(said).isEqualTo(status);
    return said;
  }
}
