// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.ErrorCode;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The help of all commands, suggestions, completion in a shell, and colours. */
@Timeout(120)
class HelpTest {
  private static CommandLine root() {
    CommandLine line = new CommandLine(new Main());
    Main.addCommands(line);
    return line;
  }

  static Stream<CommandLine> commands() {
    CommandLine root = root();
    return Stream.concat(Stream.of(root), root.getSubcommands().values().stream());
  }

  private static String help(CommandLine command) {
    return command.getUsageMessage(CommandLine.Help.Ansi.OFF);
  }

  @ParameterizedTest
  @MethodSource("commands")
  void helpFitsATerminalAndHasExamples(CommandLine command) {
    String help = help(command);
    assertThat(help.lines()).hasSizeLessThanOrEqualTo(40);
    assertThat(help.lines()).allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(80));
    assertThat(help).contains("\nExamples:\n  ").contains("--quiet", "--verbose", "--help");
    assertThat(help.contains("Exit status:")).isEqualTo(command.getParent() == null);
  }

  @ParameterizedTest
  @MethodSource("commands")
  void defaultsAndRequiredOptionsHaveOneForm(CommandLine command) {
    for (ArgSpec arg : command.getCommandSpec().args()) {
      String text = String.join(" ", arg.description());
      if (arg.defaultValue() != null) {
        assertThat(text).endsWith("(default: " + arg.defaultValue() + ").");
      }
      assertThat(text).endsWith(".").doesNotContain("$").doesNotContain("(" + arg.defaultValue() + ")");
      if (arg.isOption() && arg.required()) {
        assertThat(text).endsWith("(required).");
        assertThat(help(command).lines().findFirst().orElseThrow())
            .contains(" " + ((OptionSpec) arg).shortestName() + " ");
      }
      if (arg.completionCandidates() != null && !text.contains("example to run") && arg.isOption()) {
        List<String> values = new ArrayList<>();
        arg.completionCandidates().forEach(values::add);
        assertThat(text.contains(values.get(0)) || arg.paramLabel().equals("DTYPE")).isTrue();
      }
    }
  }

  @Test
  void anOptionOfSeveralCommandsIsTheSameEverywhere() {
    for (String name : List.of("--ranks", "--deadline", "--json", "--target", "--launch", "--quiet")) {
      List<OptionSpec> options =
          commands().flatMap(c -> Stream.ofNullable(c.getCommandSpec().findOption(name))).toList();
      assertThat(options).hasSizeGreaterThan(2);
      assertThat(options).extracting(option -> List.of(option.names())).containsOnly(List.of(options.get(0).names()));
      assertThat(options).extracting(OptionSpec::paramLabel).containsOnly(options.get(0).paramLabel());
      String subject = options.get(0).description()[0].split("[ ,]")[0];
      assertThat(options).allSatisfy(option -> assertThat(option.description()[0]).startsWith(subject));
    }
    assertThat(commands().flatMap(c -> Stream.ofNullable(c.getCommandSpec().findOption("--deadline"))))
        .allSatisfy(deadline -> assertThat(deadline.description()[0]).startsWith("Seconds without progress"));
  }

  @Test
  void examplesCanBeParsed() {
    long parsed = 0;
    for (CommandLine command : commands().toList()) {
      for (String line : command.getCommandSpec().usageMessage().footer()) {
        if (line.startsWith("  windlass ")) {
          CommandLine root = root();
          root.getSubcommands().get("run").setStopAtPositional(true);
          String words = line.substring("  windlass ".length()).replaceAll("'[^']*'", "x");
          root.parseArgs(words.split(" "));
          parsed++;
        }
      }
    }
    assertThat(parsed).isGreaterThan(15);
  }

  @ParameterizedTest
  @MethodSource("commands")
  void helpOfACommandIsTheSameEitherWay(CommandLine command) {
    boolean isRoot = command.getParent() == null;
    Cli help = isRoot ? Cli.run("help") : Cli.run("help", command.getCommandName());
    assertThat(help.status()).isZero();
    assertThat(help.out()).isEqualTo(help(command));
    assertThat(isRoot ? Cli.run("--help") : Cli.run(command.getCommandName(), "--help"))
        .isEqualTo(help);
  }

  @ParameterizedTest
  @CsvSource({
    "resharp, did you mean reshard? windlass --help",
    "bnech put, did you mean bench? windlass --help",
    "help docter, did you mean doctor? windlass --help",
    "plan --form 2:S0, did you mean --from? windlass plan --help",
    "reshard --dtpye=bf16 a b, did you mean --dtype? windlass reshard --help",
    "bench put --rank 2, did you mean --ranks? windlass bench --help",
    "xyzzy, windlass --help lists the commands",
    "plan --nonsense, windlass plan --help shows",
    "bench put --ranks 99, windlass bench --help shows what --ranks takes",
    "plan --from 2:X, 'windlass plan --help shows what it takes, with examples'",
    "'reshard --from 1:R --to 1:R no-such out', check the path; relative paths begin at /",
  })
  void aHintSaysSomething(String arguments, String hint) {
    Cli failed = Cli.run((Object[]) arguments.split(" "));
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err().lines()).hasSize(2);
    assertThat(failed.err()).contains("\nhint: " + hint);
    // The name of the command stands once in an error.
    assertThat(failed.err().lines().findFirst().orElseThrow().split("windlass")).hasSize(2);
  }

  /** Completes a command line with the script that a shell would read. */
  private static List<String> completed(Path script, String... words) throws Exception {
    String complete =
        "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_LINE=\"$*\";"
            + " COMP_POINT=${#COMP_LINE}; _complete_windlass; printf '%s\\n' \"${COMPREPLY[@]}\"";
    List<String> shell = new ArrayList<>(List.of("bash", "-c", complete, "-", script.toString()));
    shell.addAll(List.of(words));
    Process bash =
        new ProcessBuilder(shell).redirectError(ProcessBuilder.Redirect.DISCARD).start();
    String out = new String(bash.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(bash.waitFor()).as(out).isZero();
    return out.lines().map(String::strip).filter(line -> !line.isEmpty()).toList();
  }

  @Test
  void bashCompletesCommandsOptionsAndValues(@TempDir Path folder) throws Exception {
    Cli printed = Cli.run("completion", "bash");
    assertThat(printed.status()).isZero();
    Path script = Files.writeString(folder.resolve("windlass"), printed.out());
    assertThat(completed(script, "windlass", "re")).contains("reshard", "report");
    assertThat(completed(script, "windlass", "reshard", "--ma")).containsExactly("--max-shard-bytes");
    assertThat(completed(script, "windlass", "bench", "put", "--launch", "p")).containsExactly("processes");
    assertThat(completed(script, "windlass", "plan", "--dtype", "bf")).containsExactly("bf16");
    assertThat(completed(script, "windlass", "bench", "all-r")).contains("all-reduce");
    assertThat(completed(script, "windlass", "help", "man")).contains("manifest");
    assertThat(Cli.run("completion", "zsh")).isEqualTo(printed);
    assertThat(Cli.run("completion", "fish"))
        .isEqualTo(
            new Cli(
                2,
                "",
                "windlass: InvalidArgument: completion: 'fish' is none of bash, zsh\n"
                    + "hint: windlass completion --help shows what it takes, with examples\n"));
  }

  /** Runs the command on a terminal, which it shares with its errors. */
  private static String onTerminal(String variable) throws IOException, InterruptedException {
    String line =
        ChildCommand.of("plan", "--nonsense").command().stream()
            .map(word -> "'" + word + "'")
            .reduce("", (all, word) -> all + " " + word);
    ProcessBuilder terminal =
        new ProcessBuilder("script", "--quiet", "--command", line, "/dev/null").redirectErrorStream(true);
    terminal.environment().put("TERM", "xterm");
    terminal.environment().put("NO_COLOR", variable);
    Process script = terminal.start();
    String out = new String(script.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    script.waitFor();
    return out;
  }

  @Test
  void anErrorIsRedOnATerminalUnlessNobodyWantsThat() throws Exception {
    assertThat(onTerminal("")).contains("\u001b[1;31mwindlass: InvalidArgument\u001b[0m: plan: unknown");
    assertThat(onTerminal("1")).contains("windlass: InvalidArgument: plan: ").doesNotContain("\u001b[");
    assertThat(Cli.run("plan", "--nonsense").err()).doesNotContain("\u001b");
  }

  @Test
  void theTableOfStatusesIsThatOfTheErrors() {
    String help = help(root()).toLowerCase(Locale.ROOT);
    for (ErrorCode code : ErrorCode.values()) {
      assertThat(help).contains("\n  " + code.exitStatus() + "     ");
    }
  }
}
