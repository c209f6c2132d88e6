// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/** {@code windlass} in a process of its own, from the classes under test. */
public final class ChildCommand {
  private static final String NATIVES = "org.windlass.library.path";

  private ChildCommand() {}

  /** The command with these arguments, each by its text. */
  public static ProcessBuilder of(Object... arguments) {
    return withNatives(System.getProperty(NATIVES), arguments);
  }

  /**
   * The second process of a started command with {@code --launch processes}, once it runs its own
   * program: a child is the JDK's helper before.
   */
  public static Optional<ProcessHandle> secondOf(Process command) {
    return command.children().filter(ChildCommand::isRank).findFirst();
  }

  private static boolean isRank(ProcessHandle process) {
    try {
      return Files.readString(Path.of("/proc/" + process.pid() + "/cmdline"))
          .contains(LaunchedRank.option(Path.of("/")));
    } catch (IOException ended) {
      return false;
    }
  }

  /** The same with natives from {@code folder}; where it is null, from where they are found. */
  public static ProcessBuilder withNatives(String folder, Object... arguments) {
    return program(Main.class, folder, arguments);
  }

  /** Another program than the command, likewise. */
  public static ProcessBuilder program(Class<?> main, String folder, Object... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-XX:+UseTransparentHugePages", "-XX:-UsePerfData"));
    // The test's own JVM verifies the same classes.
    command.addAll(List.of("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"));
    command.add("--enable-native-access=ALL-UNNAMED");
    if (folder != null) {
      command.add("-D" + NATIVES + "=" + folder);
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    Arrays.stream(arguments).map(Object::toString).forEach(command::add);
    return new ProcessBuilder(command);
  }
}
