// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/**
 * The command line of a JVM with the classes, the options and the settings of this one. What others
 * can't see of this process's command line they can't see of that one's either.
 */
public final class OwnJvm {
  /**
   * Options of one JVM alone: a debugger's or a manager's port, an agent's or a recording's file.
   */
  private static final Pattern ALONE =
      Pattern.compile(
          "-(agentlib|agentpath|javaagent):.*|-Xrun.*|-XX:StartFlightRecording.*"
              + "|-Dcom\\.sun\\.management\\..*");

  /** Variables that have options, which such a JVM gets from there. */
  private static final List<String> VARIABLES =
      List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS");

  /** An option of such a variable, quotes and all. */
  private static final Pattern WORD = Pattern.compile("(?:[^\\s\"']|\"[^\"]*\"|'[^']*')+");

  private OwnJvm() {}

  /**
   * The command line of a program, to be started while this process lives.
   *
   * @param options for the JVM, behind this one's, which they may change
   */
  public static List<String> command(List<String> options, Class<?> main, List<String> arguments)
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
      command.add("@" + hidden(own));
    }
    // Also those that were set after the start.
    System.getProperties().stringPropertyNames().stream()
        .filter(name -> name.startsWith("org.windlass."))
        .forEach(name -> command.add("-D" + name + "=" + System.getProperty(name)));
    command.addAll(options);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(arguments);
    return command;
  }

  /** Those of a JVM's options that another of its like is to be told. */
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

  /** A file that has {@code options}, which only its owner can read, until this process ends. */
  private static Path hidden(List<String> options) throws IOException {
    Path file =
        Files.createTempFile(
            "windlass-options-",
            "",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    file.toFile().deleteOnExit();
    Files.write(file, options.stream().map(OwnJvm::quoted).toList());
    return file;
  }

  /** As the launcher reads it. */
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
