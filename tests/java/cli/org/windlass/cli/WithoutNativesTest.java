// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands of a process that finds no natives, or whose setting of them is refused. */
@Timeout(120)
class WithoutNativesTest {
  private static Cli finished(ProcessBuilder builder) throws IOException, InterruptedException {
    Process process = builder.start();
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Cli(process.waitFor(), out, err);
  }

  private static Cli run(Object... arguments) throws IOException, InterruptedException {
    return finished(ChildCommand.withNatives("/nonexistent", arguments));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "reshard", "plan", "bench", "example", "doctor", "demo"})
  void helpIsThere(String command) throws Exception {
    Cli help = command.isEmpty() ? run("--help") : run(command, "--help");
    assertThat(help.status()).as(help.err()).isZero();
    assertThat(help.out()).contains("Usage: windlass");
  }

  @Test
  void doctorGivesTheReasonAndNamesWhatWasSet() throws Exception {
    Cli doctor = run("doctor");
    assertThat(doctor.status()).as(doctor.err()).isZero();
    assertThat(doctor.out())
        .contains("jdk ", "processor ", "launch ")
        .containsPattern("sim +the natives do not load")
        .containsPattern(
            "natives +cannot load .*system property org.windlass.library.path, folder /nonexistent")
        .containsOnlyOnce("cannot load");
    ProcessBuilder byVariable = ChildCommand.withNatives(null, "doctor");
    byVariable.environment().put("WINDLASS_LIBRARY_PATH", "/nonexistent");
    assertThat(finished(byVariable).out())
        .contains("environment variable WINDLASS_LIBRARY_PATH, folder /nonexistent");
  }

  @Test
  void whatTakesNoNativesWorksAndWhatTakesThemSaysSo() throws Exception {
    Cli plan = run("plan", "--from", "2:P", "--to", "2:S0", "--shape", "4", "--dtype", "f32");
    assertThat(plan.status()).as(plan.err()).isZero();
    for (List<String> moving : List.of(List.of("bench", "put"), List.of("example", "put"))) {
      Cli failed = run(moving.toArray());
      assertThat(failed.status()).as(failed.err()).isEqualTo(3);
      assertThat(failed.out()).isEmpty();
      assertThat(failed.err().lines()).hasSize(2);
      assertThat(failed.err()).startsWith("windlass: Unsupported: cannot load the Windlass natives");
    }
  }

  @Test
  void aVectorPathThatIsNoneIsRefusedByOperationsAndShownByDoctor() throws Exception {
    ProcessBuilder doctor = ChildCommand.of("doctor");
    doctor.environment().put("WINDLASS_ISA", "avx9");
    assertThat(finished(doctor).out())
        .containsPattern("kernels +WINDLASS_ISA")
        .containsPattern("sim +WINDLASS_ISA");
    ProcessBuilder bench = ChildCommand.of("bench", "put", "--bytes", "4", "--seconds", "0.01");
    bench.environment().put("WINDLASS_ISA", "avx9");
    Cli refused = finished(bench);
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.err()).contains("WINDLASS_ISA is 'avx9', none of portable");
  }
}
