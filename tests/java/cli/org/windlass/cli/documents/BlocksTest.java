// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every fenced block of every page: its language, the first word behind the fence, and the second
 * word, where there is one, say what is done with it. A block that nothing handles fails.
 *
 * <p>{@code java}: compiled and run, by itself where {@code comm} alone is around it, {@code java
 * Puts} in that scene of {@code scenes}, and a whole program by its main. {@code sh}: run, or held
 * against what it names; {@code sh shown} only that. {@code text output}: what the commands before it print. {@code json WORD}:
 * see {@link DataBlocks}. {@code text WORD}: see {@link TextBlocks}. {@code LANGUAGE quoted}: a
 * part of a source. {@code LANGUAGE help}: made from the help of the command. {@code LANGUAGE
 * consumer}: taken by {@code tests/consumer/run}. {@code LANGUAGE project}: a file of a tutorial's
 * project, or its commands, which {@code tests/consumer/run} runs too.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class BlocksTest {
  private final Map<Block, Treatment> treated = new LinkedHashMap<>();
  private List<Block> blocks;
  private Sandbox sandbox;
  private JavaBlocks java;
  private ShellBlocks commands;
  private TextBlocks texts;
  private DataBlocks data;
  private SourceBlocks sources;
  private RunningJobs jobs;

  @BeforeAll
  void read(@TempDir Path folder) throws IOException {
    blocks = Pages.blocks();
    sandbox = new Sandbox(folder);
    jobs = new RunningJobs(sandbox);
    java = new JavaBlocks(blocks, sandbox);
    commands = new ShellBlocks(sandbox);
    texts = new TextBlocks(commands, jobs);
    data = new DataBlocks(sandbox, jobs);
    sources = new SourceBlocks();
  }

  @TestFactory
  Stream<DynamicTest> everyBlockIsCompiledAndRun() {
    return blocks.stream()
        .map(
            block ->
                DynamicTest.dynamicTest(block.toString(), () -> treated.put(block, treat(block))));
  }

  private Treatment treat(Block block) throws Exception {
    switch (block.word()) {
      case "quoted" -> {
        return sources.quoted(block);
      }
      case "help" -> {
        return new Treatment(Treatment.How.CHECKED, "CommandPagesTest and HelpTest");
      }
      case "consumer" -> {
        return sources.consumer(block);
      }
      case "project" -> {
        assumeTrue(
            sandbox.hasUcx() || !block.page().contains("two-hosts"), "this build has no UCX");
        switch (block.language()) {
          case "java" -> sources.project(block);
          case "xml" -> {
            return sources.project(block);
          }
          default -> {}
        }
      }
      default -> {}
    }
    return switch (block.language()) {
      case "java" -> java.treat(block);
      case "sh" -> commands.treat(block);
      case "text" -> {
        assumeTrue(
            sandbox.hasUcx() || !block.page().contains("two-hosts"), "this build has no UCX");
        yield texts.treat(block);
      }
      case "json" -> data.json(block);
      case "xml" -> data.xml(block);
      case "kotlin" -> data.gradle(block);
      case "" ->
          fail(
              "%s: no language behind the ```; write java, sh, text, json, xml, kotlin, cpp or cmake, and"
                  + " see BlocksTest",
              block);
      default ->
          fail(
              "%s: nothing handles this language alone; 'quoted' behind it is a part of a source,"
                  + " and 'consumer' for tests/consumer/run; or add it to BlocksTest",
              block);
    };
  }

  @Test
  void everyFenceIsOneOfABlock() throws IOException {
    for (Path page : Pages.all()) {
      String name = Pages.ROOT.relativize(page).toString();
      long fences =
          Files.readAllLines(page).stream().filter(line -> line.strip().startsWith("```")).count();
      assertThat(blocks.stream().filter(block -> block.page().equals(name)).count())
          .as("blocks of %s", name)
          .isEqualTo(fences / 2)
          .isEqualTo(Pages.blocks(name, Files.readAllLines(page)).size());
    }
    assertThat(blocks)
        .extracting(Block::page)
        .contains("README.md", "CONTRIBUTING.md", "docs/how-to/write-a-kernel.md");
  }

  @Test
  void aTutorialShowsItsProject() throws IOException {
    List<String> shown =
        blocks.stream().filter(block -> block.word().equals("project")).map(Block::text).toList();
    try (Stream<Path> files = Files.walk(SourceBlocks.TUTORIALS)) {
      for (Path file : files.filter(path -> path.toString().matches(".*\\.(java|xml)")).toList()) {
        String text = SourceBlocks.withoutLicense(file);
        if (file.endsWith("pom.xml")) {
          assertThat(text.lines().count()).as("lines of %s", file).isLessThan(25);
          // Others differ in their names only.
          assertThat(shown.stream().map(BlocksTest::withoutNames))
              .as("%s", file)
              .contains(withoutNames(text));
        } else {
          assertThat(shown).as("%s", file).contains(text);
        }
      }
    }
  }

  private static String withoutNames(String pom) {
    return pom.replaceFirst("<artifactId>[a-z-]+<", "<artifactId><");
  }

  @Test
  void everySceneIsOneOfABlock() throws IOException {
    assertThat(java.unused(JavaBlocks.scenes())).as("scenes that no page names").isEmpty();
  }

  @Test
  void anOpenBlockIsNamed() {
    assertThatThrownBy(() -> Pages.blocks("a.md", List.of("# A", "```java", "int i;")))
        .hasMessageContaining("a.md:2: nothing closes this block");
    assertThatThrownBy(() -> Pages.blocks("a.md", List.of("~~~java")))
        .hasMessageContaining("a.md:1: open");
    assertThat(Pages.blocks("a.md", List.of("1. b", "   ```sh x", "   ls", "   ```")))
        .containsExactly(new Block("a.md", 2, "sh", "x", "ls\n"));
  }

  /** How many blocks of which page are treated how. */
  @AfterAll
  void print() {
    jobs.close();
    Map<String, Map<Treatment.How, Integer>> pages = new TreeMap<>();
    treated.forEach(
        (block, treatment) ->
            pages
                .computeIfAbsent(block.page(), page -> new EnumMap<>(Treatment.How.class))
                .merge(treatment.how(), 1, Integer::sum));
    pages.forEach((page, counts) -> System.out.println("blocks of " + page + ": " + counts));
    treated.forEach(
        (block, treatment) ->
            System.out.printf("  %-40s %s: %s%n", block, treatment.how(), treatment.by()));
  }
}
