// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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

  /** A program that asks each of the commands for its help, and prints how they begin. */
  static final class Helps {
    private Helps() {}

    public static void main(String[] commands) {
      for (String command : commands) {
        Cli help = Cli.run(command, "--help");
        System.out.println(help.status() + " " + help.out().lines().findFirst().orElse(help.err()));
      }
    }
  }

  @Test
  void helpIsThere() throws Exception {
    Cli whole = run("--help");
    assertThat(whole.status()).as(whole.err()).isZero();
    assertThat(whole.out()).startsWith("Usage: windlass ");
    Object[] commands = {"reshard", "plan", "bench", "example", "doctor", "demo", "run", "report"};
    Cli each = finished(ChildCommand.program(Helps.class, "/nonexistent", commands));
    List<String> lines = each.out().lines().toList();
    assertThat(lines).as(each.err()).hasSameSizeAs(commands);
    for (int i = 0; i < commands.length; i++) {
      assertThat(lines.get(i)).startsWith("0 Usage: windlass " + commands[i] + " ");
    }
  }

  @Test
  void doctorGivesTheReasonAndNamesWhatWasSet() throws Exception {
    Cli doctor = run("doctor");
    assertThat(doctor.status()).as(doctor.err()).isZero();
    assertThat(CommandTest.unwrapped(doctor.out()))
        .contains("jdk ", "processor ", "launch ", "not usable: no target is available")
        .containsPattern("sim +the natives do not load")
        .containsPattern("threads +the natives do not load")
        .containsPattern("processes +the natives do not load")
        .containsPattern(
            "natives +cannot load .*system property org.windlass.library.path, folder /nonexistent")
        .containsOnlyOnce("cannot load");
    ProcessBuilder byVariable = ChildCommand.withNatives(null, "doctor");
    byVariable.environment().put("WINDLASS_LIBRARY_PATH", "/nonexistent");
    assertThat(CommandTest.unwrapped(finished(byVariable).out()))
        .contains("environment variable WINDLASS_LIBRARY_PATH, folder /nonexistent");
  }

  @Test
  void whatTakesNoNativesWorksAndWhatTakesThemSaysSo() throws Exception {
    Cli plan = run("plan", "--from", "2:P", "--to", "2:S0", "--shape", "4", "--dtype", "f32");
    assertThat(plan.status()).as(plan.err()).isZero();
    for (String taking : List.of("bench put", "example put-notify", "report 1", "run -n 1 true")) {
      Cli failed = run((Object[]) taking.split(" "));
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
