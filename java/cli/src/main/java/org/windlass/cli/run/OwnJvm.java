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
import org.windlass.error.AbortedException;

/**
 * The command lines of JVMs with the classes, the options and the settings of this one. What others
 * can't see of this process's command line they can't see of those either: it lies in a file, until
 * this is closed.
 */
public final class OwnJvm implements AutoCloseable {
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

  /** Folder of {@link #hidden}; null if there is none. */
  private RunFolder folder;

  /** With what others can't see; null as long as there is none. */
  private Path hidden;

  private boolean isClosed;

  /**
   * The command line of a program, to be started while this is open.
   *
   * @param options for the JVM, behind this one's, which they may change
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

  /** The file that has {@code options}, this JVM's, which only its owner can read. */
  private Path hide(List<String> options) throws IOException {
    if (isClosed) {
      throw new AbortedException("the file of a JVM's options is closed");
    }
    if (hidden == null) {
      folder = RunFolder.create("options");
      hidden =
          Files.createFile(
              folder.resolve("options"),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
      Files.write(hidden, options.stream().map(OwnJvm::quoted).toList());
    }
    return hidden;
  }

  /** Removes what was hidden. Idempotent. */
  @Override
  public synchronized void close() throws IOException {
    isClosed = true;
    if (folder != null) {
      folder.close();
    }
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
