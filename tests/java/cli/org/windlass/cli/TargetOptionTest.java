// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Target;

/** Which target's kernels a command runs, by its option, by the variable, and without either. */
@Timeout(120)
class TargetOptionTest {
  /** A command where WINDLASS_TARGET has a value, or none. */
  private static Cli run(String variable, String... arguments)
      throws IOException, InterruptedException {
    ProcessBuilder builder = ChildCommand.of((Object[]) arguments);
    builder.environment().remove("WINDLASS_TARGET");
    if (variable != null) {
      builder.environment().put("WINDLASS_TARGET", variable);
    }
    Process process = builder.start();
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Cli(process.waitFor(), out, err);
  }

  @ParameterizedTest
  @CsvSource({
    ",, sim",
    "a5sim,, a5sim",
    ", a2a3sim, a2a3sim",
    "a5sim, sim, sim",
    "a5sim, A2A3SIM, a2a3sim",
  })
  void anOptionComesBeforeTheVariable(String variable, String option, String expected)
      throws Exception {
    String bench = "bench barrier --ranks 2 --seconds 0.01 --json";
    Cli ran = run(variable, (option == null ? bench : bench + " --target " + option).split(" "));
    assertThat(ran.status()).as(ran.err()).isZero();
    assertThat(ran.out()).contains("\"target\":\"" + expected + "\"");
  }

  /** What stands behind the command of {@code run} is that command's. */
  @Test
  void theTargetOfAnotherCommandIsItsOwn() throws Exception {
    Cli ran = run(null, "run", "-n", "1", "--", "echo", "--target", "a5sim");
    assertThat(ran.status()).as(ran.err()).isZero();
    assertThat(ran.out()).contains("--target a5sim");
  }

  @ParameterizedTest
  @ValueSource(strings = {"GPU", "a9sim", ""})
  void aNameThatNoTargetHasIsRefusedByTheVariableAsByTheOption(String name) throws Exception {
    String[] bench = {"bench", "barrier", "--seconds", "0.01"};
    Cli byVariable = run(name, bench);
    Cli byOption = run(null, "bench", "barrier", "--seconds", "0.01", "--target=" + name);
    String known =
        Stream.of(Target.values()).map(Target::toString).collect(Collectors.joining(", "));
    for (Cli refused : List.of(byVariable, byOption)) {
      assertThat(refused.status()).as(refused.err()).isEqualTo(2);
      assertThat(refused.err()).contains(" is \"" + name + "\"; known are " + known);
    }
    assertThat(byVariable.err())
        .contains("environment variable WINDLASS_TARGET is", "unset it", "windlass doctor");
    Cli doctor = run(name, "doctor");
    assertThat(doctor.out() + doctor.err()).contains("environment variable WINDLASS_TARGET is");
  }

  @ParameterizedTest
  @ValueSource(strings = {"a2a3", "a5"})
  void aVariableThatNamesDevicesTellsWhatTheOptionTells(String target) throws Exception {
    String[] bench = {"bench", "barrier", "--seconds", "0.01"};
    Cli byVariable = run(target, bench);
    Cli byOption = run(null, "bench", "barrier", "--seconds", "0.01", "--target", target);
    String whyNot = "target " + target + " is not available here: this build has no libwindlass-";
    for (Cli refused : List.of(byVariable, byOption)) {
      assertThat(refused.status()).as(refused.err()).isEqualTo(3);
      assertThat(refused.err())
          .contains(whyNot, "ASCEND_HOME_PATH (", "PTO_ISA_ROOT (", "libascendcl.so, does not open:");
    }
    assertThat(byVariable.err()).contains("environment variable WINDLASS_TARGET is \"" + target);
    String told = byOption.err().substring(byOption.err().indexOf(whyNot));
    assertThat(byVariable.err()).endsWith(told);
  }

  /** Here is no GPU: else there is nothing to refuse. */
  @Test
  void aGpuThatIsNotHereIsToldByTheVariableAndByTheOption() throws Exception {
    String[] bench = {"bench", "barrier", "--seconds", "0.01", "--ranks", "2"};
    Cli byVariable = run("cuda", bench);
    Assumptions.assumeTrue(byVariable.status() != 0, "GPUs run it");
    Cli byOption =
        run(null, "bench", "barrier", "--seconds", "0.01", "--ranks", "2", "--target", "cuda");
    for (Cli refused : List.of(byVariable, byOption)) {
      assertThat(refused.status()).as(refused.err()).isEqualTo(3);
      assertThat(refused.err()).contains("Unsupported: ", "libcuda.so.1, does not open: ");
    }
    Cli doctor = run("cuda", "doctor");
    assertThat(doctor.status()).as(doctor.err()).isZero();
    assertThat(doctor.out()).doesNotContainPattern("cuda +available\\n");
  }

  @Test
  void whatNoKernelDoesIsRefusedElsewhereThanOnSim() throws Exception {
    Cli refused = run(null, "bench", "cast", "--target", "a5sim", "--seconds", "0.01");
    assertThat(refused.status()).as(refused.err()).isEqualTo(3);
    assertThat(refused.err()).contains("bench cast", "--target sim");
  }
}
