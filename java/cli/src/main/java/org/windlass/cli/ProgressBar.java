// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.util.Locale;
import org.windlass.bench.data.ByteSize;
import org.windlass.reshard.ProgressListener;

/**
 * Shows the progress of a move. On a terminal, it redraws a bar. Elsewhere, it prints a line at
 * each quarter of a move that takes longer than a second.
 */
final class ProgressBar implements ProgressListener, AutoCloseable {
  private static final int WIDTH = 40;
  private static final long QUIET_NANOS = 1_000_000_000L;
  private static final long MEASURED_NANOS = 1_000_000_000L;

  /** Shortest time over which a speed means something. */
  private static final long RATED_NANOS = 200_000_000L;

  private final PrintWriter err;
  private final boolean terminal;
  private long begin;
  private boolean begun;
  private int quarters;
  private boolean drawn;
  private boolean closed;
  private int columns;
  private long measured;

  private ProgressBar(PrintWriter err, boolean terminal) {
    this.err = err;
    this.terminal = terminal;
  }

  static ProgressBar on(PrintWriter err) {
    return new ProgressBar(err, Terminal.redraws(Terminal.ERROR));
  }

  @Override
  public synchronized void progress(long moved, long total) {
    if (closed) {
      return;
    }
    begin = begun ? begin : System.nanoTime();
    begun = true;
    double share = total == 0 ? 1 : (double) moved / total;
    long nanos = System.nanoTime() - begin;
    String rest = rest(moved, total, nanos);
    if (terminal) {
      err.print("\r" + line(share, rest, columns()));
      err.flush();
      drawn = true;
    } else if (nanos > QUIET_NANOS && (int) (share * 4) > quarters) {
      quarters = (int) (share * 4);
      err.println(rest.strip());
      err.flush();
    }
  }

  /** Returns the amount that has moved and, once they can be known, the speed and the time left. */
  static String rest(long moved, long total, long nanos) {
    String done =
        String.format(
            Locale.ROOT,
            "%3.0f %%  %s of %s",
            total == 0 ? 100 : 100.0 * moved / total,
            ByteSize.rounded(moved),
            ByteSize.rounded(total));
    if (nanos >= RATED_NANOS && moved > 0) {
      done += "  " + ByteSize.rounded((long) (moved * 1e9 / nanos)) + "/s";
    }
    boolean isKnown = nanos >= MEASURED_NANOS && moved > 0 && moved < total;
    long seconds = isKnown ? Math.round(nanos / 1e9 * (total - moved) / moved) : 0;
    // The width is fixed, so that a line overwrites a longer line before it.
    return String.format("%-50s", isKnown ? done + "  " + time(seconds) + " left" : done);
  }

  private static String time(long seconds) {
    return seconds < 120
        ? seconds + " s"
        : seconds < 7200 ? seconds / 60 + " min" : seconds / 3600 + " h";
  }

  /**
   * Returns a bar followed by {@code rest}, in fewer than {@code columns} characters.
   *
   * @param share moved fraction, 0 to 1
   */
  static String line(double share, String rest, int columns) {
    int width = Math.min(WIDTH, columns - rest.length() - "[] ".length() - 1);
    if (width > 0) {
      int full = (int) (share * width);
      return "[" + "#".repeat(full) + ".".repeat(width - full) + "] " + rest;
    }
    // The line must be shorter than the terminal: a wrapped line would survive the carriage return.
    return rest.substring(0, Math.min(rest.length(), Math.max(columns - 1, 1)));
  }

  private int columns() {
    long now = System.nanoTime();
    if (columns == 0 || now - measured > MEASURED_NANOS) {
      columns = Terminal.columns();
      measured = now;
    }
    return columns;
  }

  @Override
  public synchronized void close() {
    closed = true;
    if (drawn) {
      drawn = false;
      err.println();
      err.flush();
    }
  }
}
