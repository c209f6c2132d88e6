// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Builds command lines of JVMs with the classes, options and settings of this JVM. Options that
 * this process's command line does not show to other users are passed in a file, so that they stay
 * hidden.
 */
public final class OwnJvm {
  /** Options that only one JVM can use at a time: ports, and the files of agents and recordings. */
  private static final Pattern ALONE =
      Pattern.compile(
          "-(agentlib|agentpath|javaagent):.*|-Xrun.*|-XX:StartFlightRecording.*"
              + "|-Dcom\\.sun\\.management\\..*");

  /** Environment variables with JVM options. A child JVM inherits these variables. */
  private static final List<String> VARIABLES =
      List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS");

  private static final Pattern WORD = Pattern.compile("(?:[^\\s\"']|\"[^\"]*\"|'[^']*')+");

  private final RunFolder folder;

  /** File with the options that other users cannot see; null before it is needed. */
  private @Nullable Path hidden;

  /** Keeps files with options in {@code folder}. */
  public OwnJvm(RunFolder folder) {
    this.folder = folder;
  }

  /**
   * Returns the command line of a program. Start the program before the folder is closed.
   *
   * @param options JVM options, which follow this JVM's options and can override them
   */
  public synchronized List<String> command(List<String> options, Class<?> main, List<String> arguments)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    List<String> own =
        passedOn(
            ManagementFactory.getRuntimeMXBean().getInputArguments(), System.getenv());
    String[] visible = ProcessHandle.current().info().arguments().orElse(new String[0]);
    if (List.of(visible).containsAll(own)) {
      command.addAll(own);
    } else {
      command.add("@" + hide(own));
    }
    // Include properties that were set after the start.
    System.getProperties().stringPropertyNames().stream()
        .filter(name -> name.startsWith("org.windlass."))
        .forEach(name -> command.add("-D" + name + "=" + System.getProperty(name)));
    command.addAll(options);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(arguments);
    return command;
  }

  /** Returns the JVM options that must be on the command line of a child JVM. */
  static List<String> passedOn(List<String> options, Map<String, String> environment) {
    List<String> left = new ArrayList<>(options);
    for (String variable : VARIABLES) {
      WORD.matcher(environment.getOrDefault(variable, ""))
          .results()
          .map(MatchResult::group)
          .forEach(word -> left.remove(word.replaceAll("[\"']", "")));
    }
    left.removeIf(option -> ALONE.matcher(option).matches());
    return left;
  }

  private Path hide(List<String> options) throws IOException {
    if (hidden == null) {
      hidden = folder.newFile("options");
      Files.write(hidden, options.stream().map(OwnJvm::quoted).toList());
    }
    return hidden;
  }

  /** Quotes an option for an argument file of the java launcher. */
  private static String quoted(String option) {
    String escaped =
        option
            .replace("\\", "\\\\")
            .replace("\"", "\\\"")
            .replace("\n", "\\n")
            .replace("\r", "\\r");
    return "\"" + escaped + "\"";
  }
}
