// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.cli.documents.Treatment.How.CHECKED;
import static org.windlass.cli.documents.Treatment.How.RUN;
import static org.windlass.cli.documents.Treatment.How.RUN_ELSEWHERE;

import java.io.IOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.windlass.cli.Cli;

/**
 * The blocks of commands. One of {@code windlass} and {@code java} runs as it stands there; one of
 * builds and suites, which take too long for that, is held against what it names.
 */
final class ShellBlocks {
  private static final boolean IS_LONG = Boolean.getBoolean("windlass.long");
  private static final Set<String> RUNNABLE = Set.of("windlass", "java", "jfr");
  private static final Set<String> NEUTRAL = Set.of("export", "cd", "mkdir");

  /** Commands that do in any process what they do in one of their own. */
  private static final Set<String> OF_ANY_PROCESS = Set.of("example", "bench", "plan");

  /** Blocks of many processes that tests start in any case; they run here in the long form only. */
  private static final Map<String, String> RUN_BY_TESTS =
      IS_LONG
          ? Map.of()
          : Map.of(
              "scripts/windlass example weight-sync --launch processes",
              "ExamplesTest to its end, and InterruptionTest by this command");

  private final Sandbox sandbox;
  private final BuildCommands builds;
  private final Map<String, String> printed = new HashMap<>();

  ShellBlocks(Sandbox sandbox) throws IOException {
    this.sandbox = sandbox;
    this.builds = BuildCommands.read();
  }

  /** What the last block that ran on a page has printed. */
  Optional<String> printed(String page) {
    return Optional.ofNullable(printed.get(page));
  }

  Treatment treat(Block block) throws Exception {
    printed.remove(block.page());
    if (block.word().equals("shown")) {
      return names(block);
    }
    String tests = RUN_BY_TESTS.get(block.text().strip());
    if (tests != null) {
      return new Treatment(RUN_ELSEWHERE, tests);
    }
    List<List<String>> commands = CommandLines.of(block.text());
    Set<String> runnable = new TreeSet<>();
    Set<String> others = new TreeSet<>();
    for (List<String> command : commands) {
      String name = command.get(0).replaceFirst("^(\\./)?scripts/windlass$", "windlass");
      if (!NEUTRAL.contains(name)) {
        (RUNNABLE.contains(name) ? runnable : others).add(command.get(0));
      }
    }
    assertThat(runnable.isEmpty() || others.isEmpty())
        .as("%s: %s run and %s are checked; give them blocks of their own", block, runnable, others)
        .isTrue();
    assertThat(commands).as("%s: commands", block).isNotEmpty();
    return others.isEmpty() ? run(block) : check(block, commands);
  }

  /**
   * The words of a command that can run in this process: alone in its block, its ranks are threads on
   * the target of this process, and it names no file, which would be sought in another folder.
   */
  private static Optional<List<String>> ofThisProcess(Block block) {
    List<List<String>> commands = CommandLines.of(block.text());
    List<String> words = commands.get(0);
    boolean isOfAny =
        !IS_LONG
            && commands.size() == 1
            && block.text().matches("(scripts/)?windlass [^=>|&;]*")
            && words.size() > 1
            && OF_ANY_PROCESS.contains(words.get(1))
            && words.stream()
                .noneMatch(word -> word.matches("--(launch|target|html|csv).*|.*\\.[a-z]+"));
    return isOfAny ? Optional.of(words.subList(1, words.size())) : Optional.empty();
  }

  private Treatment run(Block block) throws Exception {
    Optional<List<String>> words = ofThisProcess(block);
    if (words.isPresent()) {
      Cli ended = Cli.run(words.get().toArray());
      assertThat(ended.status()).as("status of %s%n%s", block.text(), ended.err()).isZero();
      printed.put(block.page(), ended.out());
      return new Treatment(RUN, "the command in this process");
    }
    sandbox.checkpoint("IN");
    sandbox.checkpoint("step-1000");
    sandbox.run("rm -rf OUT serving");
    printed.put(block.page(), sandbox.run(block.text()));
    return new Treatment(RUN, "bash");
  }

  /** Commands for machines or programs that tests lack: their settings and files are known. */
  private static Treatment names(Block block) throws IOException {
    String settings = Files.readString(Pages.ROOT.resolve("docs/reference/settings.md"));
    Pattern.compile("\\bWINDLASS_[A-Z_]+")
        .matcher(block.text())
        .results()
        .forEach(
            found ->
                assertThat(settings).as("%s: settings", block).contains("`" + found.group() + "`"));
    Pattern.compile("\\bexamples/[\\w./-]+")
        .matcher(block.text())
        .results()
        .forEach(
            found -> assertThat(Pages.ROOT.resolve(found.group())).as("%s: files", block).exists());
    return new Treatment(CHECKED, "its settings and files are known");
  }

  private Treatment check(Block block, List<List<String>> commands) throws IOException {
    Set<String> run = new LinkedHashSet<>();
    for (List<String> command : commands) {
      if (!NEUTRAL.contains(command.get(0))) {
        run.add(builds.check(block, command));
      }
    }
    return new Treatment(CHECKED, "run by " + String.join("; ", run));
  }
}
