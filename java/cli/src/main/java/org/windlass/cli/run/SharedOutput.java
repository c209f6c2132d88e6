// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Standard output and standard error for several ranks. One rank writes at a time, in whole lines,
 * even if both streams are one terminal or file. After a write fails, nothing more is written.
 */
public final class SharedOutput {
  public record Loss(String stream, IOException fault) {}

  private final OutputStream out;
  private final OutputStream err;
  private final Runnable onLoss;
  private volatile @Nullable Loss loss;

  /** Creates the output from two unbuffered streams. A failed write calls {@code onLoss} once. */
  public SharedOutput(OutputStream out, OutputStream err, Runnable onLoss) {
    this.out = out;
    this.err = err;
    this.onLoss = onLoss;
  }

  void writeOut(byte[] lines, int length) {
    write("standard output", out, lines, length);
  }

  void writeErr(byte[] lines, int length) {
    write("standard error", err, lines, length);
  }

  /** Writes a line of the command itself to standard error. */
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

  /** Returns which stream failed first. Empty if all writes have succeeded. */
  public Optional<Loss> loss() {
    return Optional.ofNullable(loss);
  }
}
