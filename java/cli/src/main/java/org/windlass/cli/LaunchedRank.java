// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.Properties;
import org.windlass.error.ErrorCode;

/**
 * A process that a command has started as one of its ranks: it runs the same command, prints no
 * results, and tells the process that started it why it failed, in a file.
 */
final class LaunchedRank {
  /** The property that names the file. */
  private static final String PROPERTY = "org.windlass.cli.complaint";

  private static final String CODE = "code";
  private static final String MESSAGE = "message";
  private static final String HINT = "hint";
  private static final String TRACE = "trace";

  private LaunchedRank() {}

  /** What another rank than this process's has said. */
  private static final class Told extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String trace;

    Told(String message, String trace) {
      super(message, null, false, false);
      this.trace = trace;
    }

    @Override
    public void printStackTrace(PrintWriter to) {
      to.print(trace);
    }
  }

  /** Whether this process is one. */
  static boolean isThis() {
    return System.getProperty(PROPERTY) != null;
  }

  /** The option of a JVM that makes it one, whose complaint is to be in {@code file}. */
  static String option(Path file) {
    return "-D" + PROPERTY + "=" + file;
  }

  /** Leaves the complaint of this process, which is one; its exit status. */
  static int tell(Complaint complaint) {
    return tell(complaint, Path.of(System.getProperty(PROPERTY)));
  }

  /** Leaves a complaint in {@code to}; its exit status. */
  static int tell(Complaint complaint, Path to) {
    StringWriter trace = new StringWriter();
    complaint.fault().printStackTrace(new PrintWriter(trace, true));
    Properties said = new Properties();
    said.setProperty(CODE, complaint.code().name());
    said.setProperty(MESSAGE, complaint.message());
    said.setProperty(HINT, complaint.hint());
    said.setProperty(TRACE, trace.toString());
    try {
      // It is there whole or not at all, also where this process is killed, or the disk is full.
      Path part = to.resolveSibling(to.getFileName() + ".part");
      try (Writer file = Files.newBufferedWriter(part)) {
        said.store(file, null);
      }
      Files.move(part, to, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException unheard) {
      System.err.println(complaint.message());
    }
    return complaint.code().exitStatus();
  }

  /**
   * What a process has left in {@code file}; empty if it left none, as one that was killed.
   *
   * @param ranks what the message calls its ranks
   */
  static Optional<Complaint> told(String ranks, Path file) throws IOException {
    Properties said = new Properties();
    try (var reader = Files.newBufferedReader(file)) {
      said.load(reader);
    } catch (NoSuchFileException none) {
      return Optional.empty();
    }
    String message = ranks + ": " + said.getProperty(MESSAGE);
    return Optional.of(
        new Complaint(
            ErrorCode.valueOf(said.getProperty(CODE)),
            message,
            said.getProperty(HINT),
            new Told(message, said.getProperty(TRACE))));
  }
}
