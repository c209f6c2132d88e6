// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.cli.documents.Treatment.How.QUOTED;
import static org.windlass.cli.documents.Treatment.How.RUN_ELSEWHERE;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * The blocks that stand in a source, as {@code cpp quoted}, and those that {@code
 * tests/consumer/run} takes from a page, compiles and runs, as {@code cpp consumer}.
 */
final class SourceBlocks {
  /** Where sources lie that a page may quote, and what runs them. */
  private static final Map<String, String> QUOTABLE = new LinkedHashMap<>();

  static {
    QUOTABLE.put("examples/src/main/java", "ExamplesTest");
    QUOTABLE.put("examples/cuda/src/main/java", "PresetsAllReduceTest");
    QUOTABLE.put("examples/spark/src/main/java", "SparkExamplesTest");
    QUOTABLE.put("examples/launchers", "LauncherFilesTest and KubernetesManifestTest");
    QUOTABLE.put("kernels", "suite maven");
    QUOTABLE.put("tests/kernels", "suite maven");
    QUOTABLE.put("examples/kernels", "suite maven, by the example own-kernel");
    QUOTABLE.put("java/core/src/main/java", "suite maven");
    QUOTABLE.put("java/checkpoint/src/main/java", "suite maven");
    QUOTABLE.put("tests/java/micrometer", "suite maven");
    QUOTABLE.put("tests/python", "PythonRanksTest and PythonJobsTest");
  }

  /** Where the projects of tutorials lie, each in a folder of its page's name. */
  static final Path TUTORIALS = Pages.ROOT.resolve("examples/tutorials");

  /** A source without its white space. */
  private record Text(String file, String text, String suite) {}

  private final List<Text> sources = new ArrayList<>();

  SourceBlocks() throws IOException {
    for (Map.Entry<String, String> place : QUOTABLE.entrySet()) {
      try (Stream<Path> files = Files.walk(Pages.ROOT.resolve(place.getKey()))) {
        for (Path file :
            files.filter(file -> file.toString().matches(".*\\.(java|cpp|h|py|sh|sbatch|yaml)")).toList()) {
          String name = Pages.ROOT.relativize(file).toString();
          if (!name.contains("/target/")) {
            sources.add(new Text(name, flat(Files.readString(file)), place.getValue()));
          }
        }
      }
    }
  }

  private static String flat(String text) {
    return text.replaceAll("\\s+", " ").strip();
  }

  /** The text of a file behind the line of its license. */
  static String withoutLicense(Path file) throws IOException {
    return Files.readString(file).replaceFirst("^(//|<!--) SPDX.*\n", "");
  }

  /** Such a block is a whole file of the project of its page. */
  Treatment project(Block block) throws IOException {
    Path folder = TUTORIALS.resolve(Path.of(block.page()).getFileName().toString().replace(".md", ""));
    assertThat(folder).as("%s: the project of the page", block).isDirectory();
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(path -> path.toString().matches(".*\\.(java|xml)")).toList()) {
        if (withoutLicense(file).equals(block.text())) {
          return new Treatment(RUN_ELSEWHERE, "suite consumer");
        }
      }
    }
    throw new AssertionError(block + ": no file of " + folder + " is this");
  }

  Treatment quoted(Block block) {
    String text = flat(block.text());
    return sources.stream()
        .filter(source -> source.text.contains(text))
        .findFirst()
        .map(source -> new Treatment(QUOTED, "from " + source.file + ", " + source.suite))
        .orElseThrow(
            () ->
                new AssertionError(
                    block
                        + ": no source below "
                        + QUOTABLE.keySet()
                        + " has these lines one after the other"));
  }

  /**
   * Such a block of docs/how-to/write-a-kernel.md is taken by the consumer's script, by its
   * language. A kernel stands in a source too.
   */
  Treatment consumer(Block block) throws IOException {
    String script = Files.readString(Pages.ROOT.resolve("tests/consumer/run"));
    assertThat(script.contains("\nblock " + block.language() + " "))
        .as(
            "%s: tests/consumer/run takes blocks of this language, by a line 'block %s'",
            block, block.language())
        .isTrue();
    assertThat(block.page())
        .as("%s: the page of which tests/consumer/run takes blocks", block)
        .isEqualTo("docs/how-to/write-a-kernel.md");
    if (block.language().equals("cpp")) {
      quoted(block);
    }
    return new Treatment(RUN_ELSEWHERE, "suite consumer");
  }
}
