// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.util.Optional;
import org.windlass.error.ErrorCode;

/**
 * Standard output, where results go. The first fault of writing them is thrown through whatever
 * stands between, so that a command ends there, and is kept.
 */
final class Results extends Writer {
  /** What a write says once nobody can read it: the reader of a pipe has gone. */
  private static final String READER_GONE = "Broken pipe";

  private interface Step {
    void run() throws IOException;
  }

  private final Writer to;
  private IOException fault;

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

  /** What there is to say of results that could not be written; empty while they could. */
  Optional<Complaint> complaint() {
    synchronized (lock) {
      return Optional.ofNullable(fault)
          .map(
              failed ->
                  complaint("standard output", failed, "files that the command wrote are there"));
    }
  }

  /**
   * What there is to say of a stream that could not be written.
   *
   * @param rest what became of the command
   */
  static Complaint complaint(String stream, IOException fault, String rest) {
    return new Complaint(
        ErrorCode.RESOURCE,
        stream + " cannot be written: " + fault.getMessage(),
        "send it where there is room; " + rest,
        fault);
  }

  /** Whether results could not be written because their reader wants no more, as head does. */
  boolean isReaderGone() {
    synchronized (lock) {
      return fault != null && isReaderGone(fault);
    }
  }

  /** The same of one fault of writing. */
  static boolean isReaderGone(IOException fault) {
    return READER_GONE.equals(fault.getMessage());
  }
}
