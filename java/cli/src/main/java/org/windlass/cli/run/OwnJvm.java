// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The command line of a JVM with the classes, the options and the settings of this one. */
public final class OwnJvm {
  /** Options of one JVM alone: a debugger's port, an agent's file. */
  private static final String ALONE = "-(agentlib|agentpath|javaagent):.*|-Xrun.*";

  private OwnJvm() {}

  /**
   * The command line of a program.
   *
   * @param options for the JVM, behind this one's, which they may change
   */
  public static List<String> command(List<String> options, Class<?> main, List<String> arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(option -> !option.matches(ALONE))
        .forEach(command::add);
    // Also those that were set after the start.
    System.getProperties().stringPropertyNames().stream()
        .filter(name -> name.startsWith("org.windlass."))
        .forEach(name -> command.add("-D" + name + "=" + System.getProperty(name)));
    command.addAll(options);
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(arguments);
    return command;
  }
}
