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
 * A process of a job that an example starts. It is a JVM like this one that runs the {@code main}
 * of a class, or another program. The caller receives its output line by line.
 */
final class JobProcess implements AutoCloseable {
  /** Variables of a launcher of this process. Children must not inherit them. */
  private static final String LAUNCHER =
      "(WINDLASS_)?(LOCAL_)?(RANK|WORLD_SIZE)|WINDLASS_((LINK_)?RENDEZVOUS|TOKEN|TOKEN_FILE|JOB)"
          + "|(MASTER|OMPI|PMIX|SLURM|TORCHELASTIC)_.*";

  /** Statuses above this value mean a signal: 128 plus the signal's number. */
  private static final int SIGNALS = 128;

  private final String job;
  private final Process process;
  private final PrintStream input;
  private final Thread reader;

  /** Returns the command of a JVM that runs the {@code main} of a class. */
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
   * Starts the process.
   *
   * @param job name of its job
   * @param variables variables to set in its environment
   * @param lines receives each line that it prints, on a separate thread
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

  /** Returns this process's class path and module path as one class path. */
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
      // The process was ended.
    }
  }

  String job() {
    return job;
  }

  /** Writes a line to the process's standard input. */
  void tell(String line) {
    input.println(line);
  }

  /** Kills the process, as {@code kill -9} does, and waits for its end. */
  void kill() throws InterruptedException {
    close();
    process.waitFor();
  }

  /**
   * Waits until the process has ended and all its lines were passed on. Returns false if the
   * deadline passes first.
   */
  boolean hasEnded(Duration deadline) throws InterruptedException {
    boolean hasEnded = process.waitFor(deadline.toMillis(), TimeUnit.MILLISECONDS);
    reader.join(deadline.toMillis());
    return hasEnded;
  }

  /** Returns true if the process has ended with another status than 0. */
  boolean hasFailed() {
    return !process.isAlive() && process.exitValue() != 0;
  }

  /** Returns true if a signal has ended the process, as far as the status shows. */
  boolean wasKilled() {
    return hasFailed() && process.exitValue() > SIGNALS;
  }

  /**
   * Returns a text such as {@code process 4711 of inference has ended with status 143}, once it has
   * ended.
   */
  String end() {
    return "process " + process.pid() + " of " + job + " has ended with status "
        + process.exitValue();
  }

  /** Ends the process and its descendants. */
  @Override
  public void close() {
    process.descendants().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly();
  }
}
