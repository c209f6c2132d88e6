// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Where the threads of processes are that others wait for in vain. */
final class Threads {
  private Threads() {}

  /**
   * A line for each thread of those that still run: its name, its state, the ticks that it has
   * computed, and the system call that it is in, as Linux has them.
   */
  static String of(List<Processes.Rank> ranks) {
    StringBuilder text = new StringBuilder();
    for (Processes.Rank rank : List.copyOf(ranks)) {
      try (Stream<Path> threads = Files.list(Path.of("/proc/" + rank.pid() + "/task"))) {
        text.append("\nprocess ").append(rank.pid()).append(" runs:");
        for (Path thread : threads.sorted().toList()) {
          text.append("\n  ").append(line(thread));
        }
      } catch (IOException | UncheckedIOException e) {
        // The process has ended.
      }
    }
    return text.toString();
  }

  private static String line(Path thread) {
    String stat = read(thread.resolve("stat"));
    if (stat.isEmpty()) {
      return "a thread that has ended";
    }
    String name = stat.substring(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
    String call = read(thread.resolve("syscall"));
    return name + " " + fields[0] + " " + fields[11] + "+" + fields[12] + ", call " + call;
  }

  /** What stands there; nothing where that can't be read. */
  private static String read(Path file) {
    try {
      return Files.readString(file).strip();
    } catch (IOException e) {
      return "";
    }
  }
}
