// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.examples.Examples;

/**
 * Examples on a2a3 and a5 through a stand-in for the Ascend runtime, whose devices are the checked
 * emulator, and on cuda through one for NVIDIA's driver, whose devices run kernels as sim: the
 * command, the host side and what it launches as they are on silicon.
 */
@Tag("devices")
@Timeout(180)
class DeviceExamplesTest {
  private static final List<String> OF_COLLECTIVES =
      List.of("all-to-all", "broadcast", "all-gather", "reduce-scatter", "all-reduce", "feed-forward");
  /** The core module's build. */
  private static final Path CORE = Path.of("../core/target").toAbsolutePath().normalize();
  /** Which a build has that finds nvcc. */
  private static final Path OWN_KERNEL = Path.of("../../examples/target/libring_shift-cuda.so");

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"a2a3", "a5"})
  void ofCollectivesCheckTheirResults(String target) throws Exception {
    String said = run(target, "example", "--all", "--target", target, "--ranks", "4");
    for (String example : OF_COLLECTIVES) {
      assertThat(said.lines()).as(said).anyMatch(line -> line.startsWith(example + ": ") && line.contains("golden"));
    }
    // The first of those that devices don't run says so.
    assertThat(said).contains("Unsupported: one-sided operations don't run on " + target + " yet");
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 8})
  void allRunOnGpus(int ranks) throws Exception {
    boolean hasKernel = Files.exists(OWN_KERNEL);
    String said = run(hasKernel ? 0 : 3, "cuda", "example", "--all", "--target", "cuda", "--ranks", ranks);
    for (Examples.Example example : Examples.all()) {
      boolean isLacking = example.name().equals("own-kernel") && !hasKernel;
      assertThat(said.lines())
          .as(said)
          .anyMatch(
              line ->
                  line.contains(example.name() + ": ")
                      && line.contains(isLacking ? "there is no " : "golden"));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"all-reduce", "expert-dispatch", "own-kernel"})
  void runOnGpusOfRanksInProcesses(String example) throws Exception {
    Assumptions.assumeTrue(
        !example.equals("own-kernel") || Files.exists(OWN_KERNEL), "this build found no nvcc");
    String said =
        run(0, "cuda", "example", example, "--launch", "processes", "--target", "cuda", "--ranks", "4");
    assertThat(said.lines())
        .as(said)
        .allMatch(line -> line.startsWith(example + ": "))
        .anyMatch(line -> line.contains("4 ranks"))
        .anyMatch(line -> line.contains("golden"));
  }

  @Test
  void whatLiesInADeviceWindowMovesAndIsReduced() throws Exception {
    String said = run(0, "cuda", natives -> ChildCommand.program(DeviceWindowProgram.class, natives));
    assertThat(said).contains("device windows: 3 ranks, all as expected");
  }

  @ParameterizedTest
  @ValueSource(strings = {"a2a3", "a5"})
  void saysWhatItLacksWithoutARuntime(String target) throws Exception {
    String said = run(null, "example", "broadcast", "--target", target, "--ranks", "2");
    assertThat(said).contains("the Ascend runtime, libascendcl.so, does not open: ASCEND_HOME_PATH is not set");
  }

  @ParameterizedTest
  @ValueSource(strings = {"all-to-all", "broadcast", "all-gather", "reduce-scatter", "all-reduce"})
  void benchesOfCollectivesTakeTensorsOnDevices(String operation) throws Exception {
    String said =
        run(0, "cuda", "bench", operation, "--target", "cuda", "--ranks", "3", "--bytes", "12K",
            "--seconds", "0.05", "--buffers", "device", "--json");
    assertThat(said).contains("\"buffers\":\"device\"", "\"floor_us\":", "\"verified\":true");
  }

  @ParameterizedTest
  @CsvSource({"threads, 2, 16", "processes, 1, 32"})
  void aBenchWritesATableOfGridsThatOthersGoBy(String launch, int sharers, int most)
      throws Exception {
    Path table = folder.resolve("grids");
    String said = tune(table, launch, "all-reduce", "--bytes", "4K,64K");
    assertThat(said)
        .containsPattern("(?m)^all-reduce +2 +4K +\\d+ +\\d+\\.\\d\\d +" + most + " +\\d+\\.\\d\\d$")
        .containsPattern("(?m)^all-reduce +2 +64K +\\d+ ")
        .containsPattern("(?m)^\\S+grids has [12] rows; WINDLASS_CUDA_GRIDS=.*: 9\\.0 16, Stand-in 0$");
    String row = "9\\.0 16 %s 2 " + sharers + " \\d+ %d \\d+";
    assertThat(table).content().containsPattern("(?m)^" + String.format(row, "all-reduce", 65536) + "$");
    assertThat(tune(table, launch, "all-gather", "--bytes", "4K", "--json"))
        .startsWith(
            "{\"op\":\"all-gather\",\"target\":\"cuda\",\"launch\":\"" + launch
                + "\",\"buffers\":\"device\",\"ranks\":2,\"bytes\":4096,\"dtype\":\"f32\",\"cores\":")
        .containsPattern("\"median_us_of_cores\":\\{\"1\":\\d+\\.\\d\\d,\"2\":.*\"" + most + "\":[0-9.]+\\}\\}\n$");
    assertThat(table)
        .content()
        .containsPattern("(?m)^" + String.format(row, "all-reduce", 65536) + "$")
        .containsPattern("(?m)^" + String.format(row, "all-gather", 8192) + "$");
    assertThat(CommandTest.unwrapped(withTable(0, table, "doctor")))
        .containsPattern("\\n  grids +" + table + ", rows: [23] for GPU 0\n");
    assertThat(
            withTable(
                0, table, "bench", "all-reduce", "--target", "cuda", "--bytes", "4K,64K,1M",
                "--launch", launch, "--buffers", "device", "--seconds", "0.01", "--json"))
        .containsPattern("(?s)(\"verified\":true.*){3}");
    Files.writeString(table, Files.readString(table).replace("\nend", "\nthe end"));
    assertThat(withTable(2, table, "bench", "all-reduce", "--target", "cuda", "--launch", launch))
        .contains("WINDLASS_CUDA_GRIDS names " + table + ", which is no table of grids")
        .contains("line ", ": 'the' is no compute capability");
    assertThat(CommandTest.unwrapped(withTable(0, table, "doctor"))).contains("refused: WINDLASS_CUDA_GRIDS names ");
  }

  private String tune(Path table, String launch, Object... operation) throws Exception {
    List<Object> command = new ArrayList<>(List.of("bench"));
    command.addAll(List.of(operation));
    command.addAll(List.of("--target", "cuda", "--launch", launch, "--seconds", "0.01"));
    command.addAll(List.of("--tune-grids", table));
    return run(0, "cuda", command.toArray());
  }

  private String withTable(int status, Path table, Object... command) throws Exception {
    return withVariable(status, "WINDLASS_CUDA_GRIDS", table.toString(), command);
  }

  private String withVariable(int status, String name, String value, Object... command)
      throws Exception {
    return run(
        status,
        "cuda",
        natives -> {
          ProcessBuilder builder = ChildCommand.withNatives(natives, command);
          builder.environment().put(name, value);
          return builder;
        });
  }

  @Test
  void doctorListsWhatTheDriverShows() throws Exception {
    String said = CommandTest.unwrapped(run(0, "cuda", "doctor"));
    assertThat(said)
        .containsPattern("\\n  cuda +this process runs another target's kernels; WINDLASS_TARGET=cuda")
        .containsPattern("\\ncuda\\n  driver +for CUDA \\d+\\.\\d\\n  GPU 0 +\\S.*, compute capability \\d")
        .contains("processes that share a GPU take turns on it");
    assertThat(withVariable(0, "WINDLASS_TARGET", "cuda", "doctor"))
        .containsPattern("(?s)\\ntargets\\n.*\\n  cuda +available\\n.*\\ntransports\\n.*\\n  cuda +available\\n");
  }

  /** What the command says, which ends with status 3. {@code runtime}: whose stand-in; null: none. */
  private String run(String runtime, Object... command) throws Exception {
    return run(3, runtime, command);
  }

  private String run(int status, String runtime, Object... command) throws Exception {
    return run(status, runtime, natives -> ChildCommand.withNatives(natives, command));
  }

  private String run(int status, String runtime, Function<String, ProcessBuilder> program) throws Exception {
    Path build = CORE.resolve("cmake/sim");
    Path library = build.resolve("tests/native/libwindlass-a2a3.so");
    Assumptions.assumeTrue(
        Files.exists(library),
        "no " + library + ": it is built with the natives of x86-64, where tests are");
    for (String target : List.of("a2a3", "a5", "cuda")) {
      copy(build.resolve("tests/native/libwindlass-" + target + ".so"));
    }
    copy(build.resolve("libwindlass.so"));
    try (var natives = Files.walk(CORE.resolve("native"))) {
      copy(natives.filter(file -> file.endsWith("libjniwindlass.so")).findFirst().orElseThrow());
    }
    Path output = folder.resolve("output");
    ProcessBuilder builder = program.apply(folder.toString());
    builder.environment().keySet().removeIf(name -> name.startsWith("ASCEND_"));
    if ("cuda".equals(runtime)) {
      builder.environment().put("LD_LIBRARY_PATH", build.resolve("cuda_stand_in").toString());
    } else if (runtime != null) {
      builder.environment().put("ASCEND_HOME_PATH", build.resolve("acl_" + runtime).toString());
    }
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(150, TimeUnit.SECONDS)).as(Files.readString(output)).isTrue();
    } finally {
      process.destroyForcibly();
    }
    String said = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(process.exitValue()).as(said).isEqualTo(status);
    return said;
  }

  private void copy(Path library) throws Exception {
    Path copy = folder.resolve(library.getFileName());
    if (!Files.exists(copy)) {
      Files.copy(library, copy);
    }
  }
}
