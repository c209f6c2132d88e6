// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.kernel.Target;

/** Which target's kernels a command runs, by its option, by the variable, and without either. */
@Timeout(120)
class TargetOptionTest {
  /** What separates the commands of {@link Several}. */
  private static final String NEXT = "NEXT";

  /** Runs several commands, one after the other, and prints the errors of each, and a line. */
  static final class Several {
    private Several() {}

    public static void main(String[] words) {
      for (String command : String.join(" ", words).split(" " + NEXT + " ")) {
        Cli ended = Cli.run((Object[]) command.split(" "));
        System.out.println(ended.out() + ended.err() + NEXT + " " + ended.status());
      }
    }
  }

  /** A command where WINDLASS_TARGET has a value, or none. */
  private static Cli run(String variable, String... arguments)
      throws IOException, InterruptedException {
    return ended(variable, ChildCommand.of((Object[]) arguments));
  }

  /** The output and the status of a command, and then of doctor, by one process. */
  private static String[] runAndDoctor(String variable, String... arguments)
      throws IOException, InterruptedException {
    List<String> words = new ArrayList<>(List.of(arguments));
    words.addAll(List.of(NEXT, "doctor"));
    String natives = System.getProperty("org.windlass.library.path");
    Cli ended = ended(variable, ChildCommand.program(Several.class, natives, words.toArray()));
    assertThat(ended.status()).as(ended.err()).isZero();
    String[] each = ended.out().split("(?<=" + NEXT + " \\d{1,3}\n)");
    assertThat(each).hasSize(2);
    return each;
  }

  private static Cli ended(String variable, ProcessBuilder builder)
      throws IOException, InterruptedException {
    builder.environment().remove("WINDLASS_TARGET");
    if (variable != null) {
      builder.environment().put("WINDLASS_TARGET", variable);
    }
    Process process = builder.start();
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    String err = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Cli(process.waitFor(), out, err);
  }

  private static void requireTarget(Cli ran, String expected) {
    assertThat(ran.status()).as(ran.err()).isZero();
    assertThat(ran.out()).contains("\"target\":\"" + expected + "\"");
  }

  @ParameterizedTest
  @CsvSource({"a5sim,, a5sim", "a5sim, A2A3SIM, a2a3sim"})
  void anOptionComesBeforeTheVariable(String variable, String option, String expected)
      throws Exception {
    String bench = "bench put --ranks 2 --bytes 4 --seconds 0.01 --json";
    requireTarget(
        run(variable, (option == null ? bench : bench + " --target " + option).split(" ")),
        expected);
  }

  /** The JVM of the tests has no variable. */
  @Test
  void withoutEitherItIsSim() {
    String bench = "bench put --ranks 2 --bytes 4 --seconds 0.01 --json";
    requireTarget(Cli.run((Object[]) bench.split(" ")), "sim");
  }

  @ParameterizedTest
  @ValueSource(strings = {"GPU", "a9sim", ""})
  void aNameThatNoTargetHasIsRefusedByTheOption(String name) {
    Cli refused = Cli.run("bench", "barrier", "--seconds", "0.01", "--target=" + name);
    assertThat(refused.status()).as(refused.err()).isEqualTo(2);
    assertThat(refused.err()).contains(" is \"" + name + "\"; known are " + known());
  }

  @ParameterizedTest
  @ValueSource(strings = {"GPU", ""})
  void aNameThatNoTargetHasIsRefusedByTheVariable(String name) throws Exception {
    String[] said = runAndDoctor(name, "bench", "barrier", "--seconds", "0.01");
    assertThat(said[0])
        .contains(" is \"" + name + "\"; known are " + known())
        .contains("environment variable WINDLASS_TARGET is", "unset it", "windlass doctor")
        .endsWith(NEXT + " 2\n");
    assertThat(CommandTest.unwrapped(said[1])).contains("environment variable WINDLASS_TARGET is");
  }

  private static String known() {
    return Stream.of(Target.values()).map(Target::toString).collect(Collectors.joining(", "));
  }

  @Test
  void aVariableThatNamesDevicesTellsWhatTheOptionTells() throws Exception {
    String[] bench = {"bench", "barrier", "--seconds", "0.01"};
    Cli byVariable = run("a2a3", bench);
    Cli byOption = run(null, "bench", "barrier", "--seconds", "0.01", "--target", "a2a3");
    requireNoDevices(byVariable, "a2a3");
    String told = requireNoDevices(byOption, "a2a3");
    requireNoDevices(run("a5", bench), "a5");
    assertThat(byVariable.err()).contains("environment variable WINDLASS_TARGET is \"a2a3");
    assertThat(byVariable.err()).endsWith(told);
  }

  /** The reason, to its end. */
  private static String requireNoDevices(Cli refused, String target) {
    String whyNot = "target " + target + " is not available here: this build has no libwindlass-";
    assertThat(refused.status()).as(refused.err()).isEqualTo(3);
    assertThat(refused.err())
        .contains(whyNot, "ASCEND_HOME_PATH (", "PTO_ISA_ROOT (", "libascendcl.so, does not open:");
    return refused.err().substring(refused.err().indexOf(whyNot));
  }

  /** Here is no GPU: else there is nothing to refuse. */
  @Test
  void aGpuThatIsNotHereIsToldByTheVariableAndByTheOption() throws Exception {
    String[] bench = {"bench", "barrier", "--seconds", "0.01", "--ranks", "2"};
    String[] said = runAndDoctor("cuda", bench);
    Assumptions.assumeTrue(!said[0].endsWith(NEXT + " 0\n"), "GPUs run it");
    Cli byOption =
        run(null, "bench", "barrier", "--seconds", "0.01", "--ranks", "2", "--target", "cuda");
    assertThat(byOption.status()).as(byOption.err()).isEqualTo(3);
    for (String refused : List.of(said[0], byOption.err() + NEXT + " 3\n")) {
      assertThat(refused)
          .contains("Unsupported: ", "libcuda.so.1, does not open: ")
          .endsWith(NEXT + " 3\n");
    }
    assertThat(said[1]).doesNotContainPattern("cuda +available\\n").endsWith(NEXT + " 0\n");
  }

  @Test
  void whatNoKernelDoesIsRefusedElsewhereThanOnSim() throws Exception {
    Cli refused = run(null, "bench", "cast", "--target", "a5sim", "--seconds", "0.01");
    assertThat(refused.status()).as(refused.err()).isEqualTo(3);
    assertThat(refused.err()).contains("bench cast", "--target sim");
  }
}
