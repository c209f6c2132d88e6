// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A process of a job that an example starts: a JVM like this one, which runs the {@code main} of a
 * class and ends when that one does, or another program. What it prints goes to whoever started it,
 * line by line.
 */
final class JobProcess implements AutoCloseable {
  /** Variables of a launcher around this process, which would speak for its children too. */
  private static final String LAUNCHER =
      "(WINDLASS_)?(LOCAL_)?(RANK|WORLD_SIZE)|WINDLASS_((LINK_)?RENDEZVOUS|TOKEN|TOKEN_FILE|JOB)"
          + "|(MASTER|OMPI|PMIX|SLURM|TORCHELASTIC)_.*";

  /** Above it, statuses are of signals: 128 and the number. */
  private static final int SIGNALS = 128;

  private final String job;
  private final Process process;
  private final PrintStream input;
  private final Thread reader;

  /** The command of a JVM that runs the {@code main} of a class. */
  static List<String> java(Class<?> main, List<String> arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.add("--enable-native-access=ALL-UNNAMED");
    String natives = System.getProperty("org.windlass.library.path");
    if (natives != null) {
      command.add("-Dorg.windlass.library.path=" + natives);
    }
    command.add("-cp");
    command.add(classPath());
    command.add(main.getName());
    command.addAll(arguments);
    return command;
  }

  /**
   * Starts it.
   *
   * @param job whose it is
   * @param variables to be set for it, of its environment
   * @param lines gets each line that it prints, on a thread of its own
   */
  JobProcess(
      String job, List<String> command, Map<String, String> variables, Consumer<String> lines) {
    this.job = job;
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().keySet().removeIf(name -> name.matches(LAUNCHER));
    builder.environment().putAll(variables);
    try {
      process = builder.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    input = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
    reader = new Thread(() -> read(lines), "job-output");
    reader.setDaemon(true);
    reader.start();
  }

  /** That of this process, on the class path as on the module path. */
  private static String classPath() {
    return String.join(
        File.pathSeparator,
        List.of(
                System.getProperty("java.class.path", ""),
                System.getProperty("jdk.module.path", ""))
            .stream()
            .filter(path -> !path.isEmpty())
            .toList());
  }

  private void read(Consumer<String> lines) {
    try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
      output.lines().forEach(lines);
    } catch (IOException | UncheckedIOException e) {
      // It was ended.
    }
  }

  String job() {
    return job;
  }

  /** Gives it a line to read. */
  void tell(String line) {
    input.println(line);
  }

  /** Kills it, as {@code kill -9} does, and waits for its end. */
  void kill() throws InterruptedException {
    close();
    process.waitFor();
  }

  /** Waits until it has ended, and all that it has said is told; false where it has not in time. */
  boolean hasEnded(Duration deadline) throws InterruptedException {
    boolean hasEnded = process.waitFor(deadline.toMillis(), TimeUnit.MILLISECONDS);
    reader.join(deadline.toMillis());
    return hasEnded;
  }

  /** Whether it has ended with another status than 0. */
  boolean hasFailed() {
    return !process.isAlive() && process.exitValue() != 0;
  }

  /** The same by a signal, as far as its status tells. */
  boolean wasKilled() {
    return hasFailed() && process.exitValue() > SIGNALS;
  }

  /** Such as {@code process 4711 of inference has ended with status 143}, once it has. */
  String end() {
    return "process " + process.pid() + " of " + job + " has ended with status "
        + process.exitValue();
  }

  /** Ends it, and those that it has started. */
  @Override
  public void close() {
    process.descendants().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly();
  }
}
