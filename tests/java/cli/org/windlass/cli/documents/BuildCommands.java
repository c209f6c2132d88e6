// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What commands that build and test name: presets, modules, profiles, properties, classes, targets,
 * scripts and their options. Each is there, and a suite of {@code scripts/test} runs the like.
 *
 * @param presets of CMake
 * @param modules of Maven
 * @param profiles of Maven's modules
 * @param properties that modules and plugins take
 * @param targets that CMake's files define
 * @param testClasses the names of the classes of tests
 */
record BuildCommands(
    Set<String> presets,
    Set<String> modules,
    Set<String> profiles,
    Set<String> properties,
    Set<String> targets,
    Set<String> testClasses) {
  private static final Set<String> PHASES =
      Set.of("clean", "package", "verify", "install", "process-test-classes");
  private static final Set<String> PLUGINS =
      Set.of("javadoc:javadoc", "surefire:test", "dependency:copy-dependencies");
  private static final Set<String> OPTIONS = Set.of("-am", "-q");

  static BuildCommands read() throws IOException {
    String poms = text(Pages.ROOT, 4, "pom.xml");
    Set<String> properties = found("<([a-z][\\w.]+)>", poms);
    properties.addAll(Set.of("test", "surefire.failIfNoSpecifiedTests"));
    Set<String> tests = new TreeSet<>();
    try (Stream<Path> files = Files.walk(Pages.ROOT.resolve("tests/java"))) {
      files.map(file -> file.getFileName().toString().replace(".java", "")).forEach(tests::add);
    }
    return new BuildCommands(
        found("\"name\": \"([\\w-]+)\"", Files.readString(Pages.ROOT.resolve("CMakePresets.json"))),
        found("<module>([^<]+)</module>", poms),
        found("<profile>\\s*(?:<!--.*?-->\\s*)?<id>([^<]+)</id>", poms),
        properties,
        found(
            "add_(?:library|executable|custom_target)\\((\\w+)",
            text(Pages.ROOT.resolve("cmake"), 3, ".cmake")
                + text(Pages.ROOT, 1, "CMakeLists.txt")
                + text(Pages.ROOT.resolve("tests"), 3, "CMakeLists.txt")),
        tests);
  }

  private static String text(Path folder, int depth, String ending) throws IOException {
    StringBuilder text = new StringBuilder();
    try (Stream<Path> files =
        Files.find(
            folder,
            depth,
            (file, is) ->
                file.toString().endsWith(ending)
                    && !file.toString().contains("/target/")
                    && !file.toString().contains("/build/"))) {
      for (Path file : files.toList()) {
        text.append(Files.readString(file));
      }
    }
    return text.toString();
  }

  private static Set<String> found(String form, String text) {
    return Pattern.compile(form)
        .matcher(text)
        .results()
        .map(result -> result.group(1))
        .collect(Collectors.toCollection(TreeSet::new));
  }

  /** Holds a command against what it names, and says what runs it or the like. */
  String check(Block block, List<String> command) throws IOException {
    List<String> arguments = command.subList(1, command.size());
    String name = command.get(0).replaceFirst("^\\./", "");
    switch (name) {
      case "mvn" -> maven(block, arguments);
      case "cmake", "ctest" -> cmake(block, arguments);
      case "setarch" -> {
        return check(block, arguments.subList(1, arguments.size()));
      }
      default -> {
        if (!name.matches("scripts/\\w+|tests/\\w+/\\w+")) {
          fail(
              "%s: nothing handles '%s'; add it to ShellBlocks, if it can run here, or to"
                  + " BuildCommands",
              block, name);
        }
        script(block, name, arguments);
      }
    }
    return switch (name) {
      case "mvn" -> block.word().equals("project") ? "suite consumer" : "suite maven";
      case "cmake", "ctest" -> "suites maven, consumer, asan and tsan";
      case "scripts/demo" -> "DemoTest, as windlass demo";
      case "scripts/test" -> ".ci/run";
      case "scripts/bench" -> "suite scripts, shortened";
      case "scripts/spark" -> "suite scripts";
      default -> "suite " + name.replaceFirst("tests/(\\w+)/.*", "$1");
    };
  }

  private void maven(Block block, List<String> arguments) {
    for (int i = 0; i < arguments.size(); i++) {
      String argument = arguments.get(i);
      if (argument.equals("-pl")) {
        assertThat(modules).as("%s: modules", block).contains(arguments.get(++i).split(","));
      } else if (argument.startsWith("-P")) {
        assertThat(profiles).as("%s: profiles", block).contains(argument.substring(2));
      } else if (argument.startsWith("-D")) {
        String[] property = argument.substring(2).split("=", 2);
        assertThat(properties).as("%s: properties", block).contains(property[0]);
        if (property[0].equals("test")) {
          assertThat(testClasses)
              .as("%s: classes of tests", block)
              .contains(property[1].split(","));
        }
      } else if (!OPTIONS.contains(argument)) {
        assertThat(PHASES.contains(argument) || PLUGINS.contains(argument))
            .as(
                "%s: '%s' is neither of the phases %s nor of the goals %s",
                block, argument, PHASES, PLUGINS)
            .isTrue();
      }
    }
  }

  private void cmake(Block block, List<String> arguments) {
    for (int i = 0; i < arguments.size(); i++) {
      switch (arguments.get(i)) {
        case "--preset" ->
            assertThat(presets).as("%s: presets", block).contains(arguments.get(++i));
        case "--target" ->
            assertThat(targets).as("%s: targets", block).contains(arguments.get(++i));
        case "--install" ->
            assertThat(presets)
                .as("%s: presets", block)
                .contains(arguments.get(++i).replaceFirst("^build/", ""));
        case "--prefix", "-R" -> i++;
        case "--build" -> {}
        default ->
            fail(
                "%s: nothing handles '%s' of cmake; add it to BuildCommands",
                block, arguments.get(i));
      }
    }
  }

  /** Options of a script stand in it, or in the program that it passes them to. */
  private static void script(Block block, String name, List<String> arguments) throws IOException {
    Path file = Pages.ROOT.resolve(name);
    assertThat(file).as("%s", block).isExecutable();
    String known =
        Files.readString(file) + text(Pages.ROOT.resolve("java/bench/src/main/java"), 9, ".java");
    List<String> suites =
        Pattern.compile("(?m)^(?:all|alone)=\\((.*)\\)")
            .matcher(known)
            .results()
            .flatMap(found -> Stream.of(found.group(1).split(" ")))
            .toList();
    for (String argument : arguments) {
      if (argument.startsWith("--")) {
        assertThat(known)
            .as("%s: options of %s", block, name)
            .contains(argument.replaceFirst("=.*", ""));
      } else if (name.equals("scripts/test")) {
        assertThat(suites).as("%s: suites of %s", block, name).contains(argument);
      }
    }
  }
}
