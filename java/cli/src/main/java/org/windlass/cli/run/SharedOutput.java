// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * Standard output and standard error, which several ranks write to, one at a time: whole lines,
 * also where both are one terminal or file. Once one cannot be written, nothing more is.
 */
public final class SharedOutput {
  /** What could not be written, and why. */
  public record Loss(String stream, IOException fault) {}

  private final OutputStream out;
  private final OutputStream err;
  private final Runnable onLoss;
  private volatile Loss loss;

  /**
   * Takes two streams that do not buffer.
   *
   * @param onLoss runs once, when a write fails
   */
  public SharedOutput(OutputStream out, OutputStream err, Runnable onLoss) {
    this.out = out;
    this.err = err;
    this.onLoss = onLoss;
  }

  /** Writes whole lines to standard output. */
  void writeOut(byte[] lines, int length) {
    write("standard output", out, lines, length);
  }

  /** Writes whole lines to standard error. */
  void writeErr(byte[] lines, int length) {
    write("standard error", err, lines, length);
  }

  /** Writes a line of the command's own to standard error. */
  public void say(String line) {
    byte[] bytes = (line + "\n").getBytes(StandardCharsets.UTF_8);
    writeErr(bytes, bytes.length);
  }

  private synchronized void write(String name, OutputStream to, byte[] lines, int length) {
    if (loss != null) {
      return;
    }
    try {
      to.write(lines, 0, length);
      to.flush();
    } catch (IOException fault) {
      loss = new Loss(name, fault);
      onLoss.run();
    }
  }

  /** The first stream that could not be written; empty while both could. */
  public Optional<Loss> loss() {
    return Optional.ofNullable(loss);
  }
}
