// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A child process that prints lines. Each line has to arrive within a deadline. */
final class Child implements AutoCloseable {
  private static final Duration GRACE = Duration.ofSeconds(2);
  private static final String END = "";

  private final Process process;
  private final Duration deadline;
  private final Path errors;
  private final Thread atExit = new Thread(this::kill);
  private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

  static final class Stopped extends Exception {
    private static final long serialVersionUID = 1L;

    Stopped(String reason) {
      super(reason);
    }
  }

  /** Starts the command, with its standard error in the file {@code errors}. */
  Child(List<String> command, Duration deadline, Path errors) {
    this.deadline = deadline;
    this.errors = errors;
    try {
      process = new ProcessBuilder(command).redirectError(errors.toFile()).start();
      process.getOutputStream().close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    Runtime.getRuntime().addShutdownHook(atExit);
    Thread reader = new Thread(this::read, "child output");
    reader.setDaemon(true);
    reader.start();
  }

  private void read() {
    try (BufferedReader output = process.inputReader()) {
      output.lines().filter(line -> !line.isBlank()).forEach(lines::add);
    } catch (IOException | UncheckedIOException e) {
      // The process was killed. There is nothing more to read.
    }
    lines.add(END);
  }

  /** Returns the next line. Throws if the process ends first, or the deadline passes. */
  String next() throws Stopped, InterruptedException {
    String line = lines.poll(deadline.toMillis(), TimeUnit.MILLISECONDS);
    if (line == null) {
      throw new Stopped("deadline of " + deadline.toSeconds() + " s");
    }
    if (line.equals(END)) {
      lines.add(END);
      throw new Stopped("status " + process.waitFor() + ": " + lastError());
    }
    return line;
  }

  private String lastError() {
    try {
      List<String> said = Files.readAllLines(errors);
      return said.stream().filter(line -> !line.isBlank()).reduce((a, b) -> b).orElse("silent");
    } catch (IOException e) {
      return "no output";
    }
  }

  /** Gives the process a short time to end, then kills it and all processes that it has started. */
  @Override
  public void close() {
    try {
      process.waitFor(GRACE.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    kill();
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException e) {
      // The shutdown hook is already running.
    }
  }

  private void kill() {
    List<ProcessHandle> all = process.descendants().toList();
    process.destroyForcibly();
    all.forEach(ProcessHandle::destroyForcibly);
  }
}
