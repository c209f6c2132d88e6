// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.Properties;
import org.windlass.error.ErrorCode;

/**
 * A process that a command has started as one of its ranks. It runs the same command and prints no
 * results. If it fails, it writes the reason to a file for the process that started it.
 */
final class LaunchedRank {
  private static final String PROPERTY = "org.windlass.cli.complaint";

  private static final String CODE = "code";
  private static final String MESSAGE = "message";
  private static final String HINT = "hint";
  private static final String TRACE = "trace";

  private LaunchedRank() {}

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

  static boolean isThis() {
    return System.getProperty(PROPERTY) != null;
  }

  /** Returns the JVM option that makes a process a rank, which writes its error to {@code file}. */
  static String option(Path file) {
    return "-D" + PROPERTY + "=" + file;
  }

  static int tell(Complaint complaint) {
    return tell(complaint, Path.of(System.getProperty(PROPERTY)));
  }

  static int tell(Complaint complaint, Path to) {
    Properties said = new Properties();
    said.setProperty(CODE, complaint.code().name());
    said.setProperty(MESSAGE, complaint.message());
    said.setProperty(HINT, complaint.hint());
    said.setProperty(TRACE, complaint.trace());
    try {
      // Rename a complete file: a killed process or a full disk must not leave a partial one.
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

  /** Returns the error that a process has written to {@code file}. Empty if it has written none. */
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
