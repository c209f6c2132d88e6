// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.windlass.cli.documents.Treatment.How.CHECKED;
import static org.windlass.cli.documents.Treatment.How.COMPARED;
import static org.windlass.cli.documents.Treatment.How.READ;
import static org.windlass.cli.documents.Treatment.How.RUN_ELSEWHERE;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.bench.sample.GridRows;
import org.windlass.gpu.CudaGrids;

/** The blocks of plain text: output, held against that of a run by its shape, and notations. */
final class TextBlocks {
  /** The words of such blocks, and what they stand for. */
  static final Map<String, String> WORDS =
      Map.of(
          "output", "what the block of commands before it prints",
          "hang", "what is said of a rank that doesn't come",
          "report", "what windlass report prints of a job with a stopped rank",
          "grammar", "the grammar of layouts",
          "grids", "a table of grids",
          "diagram", "messages, whose words in capitals stand in the sources of the protocols",
          "folders", "folders of the checkout, a name and / at the beginning of a line",
          "mistake", "what a kernel of tests/kernels/mistakes.cpp is told");

  private final ShellBlocks commands;
  private final RunningJobs jobs;
  private List<String> hang = List.of();

  TextBlocks(ShellBlocks commands, RunningJobs jobs) {
    this.commands = commands;
    this.jobs = jobs;
  }

  Treatment treat(Block block) throws Exception {
    return switch (block.word()) {
      case "output" -> output(block);
      case "hang" -> {
        hang = hang.isEmpty() ? Hang.told() : hang;
        assertThat(hang.stream().map(TextBlocks::flat))
            .as("%s: one of these", block)
            .contains(flat(block.text()));
        yield new Treatment(COMPARED, "an all-reduce that a rank doesn't come to");
      }
      case "report" -> {
        assertThat(flat(jobs.table())).as("%s: by its shape", block).isEqualTo(flat(block.text()));
        yield new Treatment(COMPARED, "windlass report");
      }
      case "grammar" -> {
        new LayoutGrammar(block.text()).check(block);
        yield new Treatment(READ, "Layout.parse agrees");
      }
      case "folders" -> folders(block);
      case "diagram" -> diagram(block);
      case "grids" -> {
        try {
          assertThat(GridRows.of(block.text()).rows()).as("%s", block).isNotEmpty();
        } finally {
          CudaGrids.useVariable();
        }
        yield new Treatment(READ, "CudaGrids.use takes it");
      }
      case "mistake" -> mistake(block);
      default ->
          fail(
              "%s: nothing handles this word behind text; those that are known: %s. Text that is"
                  + " the output of a run follows the block of its commands as 'text output'",
              block, WORDS);
    };
  }

  private Treatment output(Block block) {
    String printed =
        commands
            .printed(block.page())
            .orElseThrow(
                () ->
                    new AssertionError(
                        block + ": no block of commands before it on its page has run"));
    assertThat(shapes(printed))
        .as("%s: the lines that the commands print, by their shape", block)
        .isEqualTo(shapes(block.text()));
    return new Treatment(COMPARED, "the output of the block before");
  }

  /** Lines without what differs from run to run; ranks print in any order. */
  private static List<String> shapes(String text) {
    return text.lines().map(TextBlocks::flat).sorted().toList();
  }

  private static Treatment diagram(Block block) throws IOException {
    StringBuilder sources = new StringBuilder();
    for (String file : List.of("internal/store/Wire", "link/Handover", "link/LedCalls")) {
      Path path = Pages.ROOT.resolve("java/core/src/main/java/org/windlass/" + file + ".java");
      sources.append(Files.readString(path));
    }
    Matcher words = Pattern.compile("\\b[A-Z][A-Z_]{3,}\\b").matcher(block.text());
    while (words.find()) {
      assertThat(sources.toString()).as("%s", block).containsPattern("\\b" + words.group() + "\\b");
    }
    return new Treatment(READ, "its messages are there");
  }

  /** The text without what differs from run to run. */
  private static String flat(String text) {
    return text.replaceAll("communicator [0-9a-f]+", "communicator ID")
        .replaceAll("[0-9]+([.,][0-9]+)*", "N")
        .replaceAll("\\bN (us|ms|s|min)\\b", "N s")
        .replaceAll("\\s+", " ")
        .strip();
  }

  private static Treatment folders(Block block) {
    List<String> named =
        block
            .text()
            .lines()
            .filter(line -> line.matches("\\w+/ .*"))
            .map(line -> line.replaceFirst("/ .*", ""))
            .toList();
    assertThat(named).as("%s: folders", block).isNotEmpty();
    for (String folder : named) {
      assertThat(Pages.ROOT.resolve(folder)).as("%s", block).isDirectory();
    }
    return new Treatment(CHECKED, "tests/layers/run holds the rules");
  }

  private static Treatment mistake(Block block) throws Exception {
    Path test = Pages.ROOT.resolve("tests/native/core/mistakes_test.cpp");
    String known = Files.readString(test);
    for (String line : block.text().lines().toList()) {
      String[] words = line.replaceFirst("([a-z-]+): kernel (\\w+), rank .*", "$1 $2").split(" ");
      assertThat(words).as("%s: rule: kernel NAME, rank ...", block).hasSize(2);
      String call = "expectRefused\\(\"" + words[1] + "\", [\\d']+, \"" + words[0] + "\"\\)";
      assertThat(Pattern.compile(call).matcher(known).find())
          .as("%s: %s has %s", block, Pages.ROOT.relativize(test), call)
          .isTrue();
    }
    return new Treatment(RUN_ELSEWHERE, "Mistakes of windlass_test_core, in suite maven");
  }
}
