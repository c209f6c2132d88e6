// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ErrorCode;

/**
 * Standard output, for results. It keeps the first I/O error, and throws it as an unchecked
 * exception, so that the error ends the command.
 */
final class Results extends Writer {
  private static final String READER_GONE = "Broken pipe";

  private interface Step {
    void run() throws IOException;
  }

  private final Writer to;
  private @Nullable IOException fault;

  Results(Writer to) {
    this.to = to;
  }

  @Override
  public void write(char[] text, int from, int length) {
    checked(() -> to.write(text, from, length));
  }

  @Override
  public void flush() {
    checked(to::flush);
  }

  @Override
  public void close() {
    checked(to::close);
  }

  private void checked(Step step) {
    synchronized (lock) {
      try {
        step.run();
      } catch (IOException failed) {
        fault = fault == null ? failed : fault;
        throw new UncheckedIOException(failed);
      }
    }
  }

  Optional<Complaint> complaint() {
    synchronized (lock) {
      return Optional.ofNullable(fault)
          .map(
              failed ->
                  complaint(
                      "standard output", failed, "files that the command wrote are complete"));
    }
  }

  static Complaint complaint(String stream, IOException fault, String rest) {
    return new Complaint(
        ErrorCode.RESOURCE,
        stream + " cannot be written: " + fault.getMessage(),
        "redirect it to a file system with room; " + rest,
        fault);
  }

  /** Returns true if results were lost because the pipe's reader, such as head, has ended. */
  boolean isReaderGone() {
    synchronized (lock) {
      return fault != null && isReaderGone(fault);
    }
  }

  static boolean isReaderGone(IOException fault) {
    return READER_GONE.equals(fault.getMessage());
  }
}
