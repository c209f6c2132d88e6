// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.util.Locale;
import org.windlass.reshard.ProgressListener;

/**
 * A bar that shows how far a move is, and redraws itself on a terminal; elsewhere a line at each
 * quarter of a move that takes longer than a second, from the first word of it on.
 */
final class ProgressBar implements ProgressListener, AutoCloseable {
  private static final int WIDTH = 40;
  private static final long QUIET_NANOS = 1_000_000_000L;

  private final PrintWriter err;
  private final boolean terminal;
  private long begin;
  private boolean begun;
  private int quarters;
  private boolean drawn;

  private ProgressBar(PrintWriter err, boolean terminal) {
    this.err = err;
    this.terminal = terminal;
  }

  static ProgressBar on(PrintWriter err) {
    return new ProgressBar(err, Terminal.redraws(Terminal.ERROR));
  }

  @Override
  public synchronized void progress(long moved, long total) {
    begin = begun ? begin : System.nanoTime();
    begun = true;
    double share = total == 0 ? 1 : (double) moved / total;
    long nanos = System.nanoTime() - begin;
    if (terminal) {
      int full = (int) (share * WIDTH);
      err.printf(
          Locale.ROOT,
          "\r[%s%s] %3.0f %%  %.2f of %.2f GB  %.2f GB/s ",
          "#".repeat(full),
          ".".repeat(WIDTH - full),
          100 * share,
          moved / 1e9,
          total / 1e9,
          moved / Math.max(nanos, 1.0));
      err.flush();
      drawn = true;
    } else if (nanos > QUIET_NANOS && (int) (share * 4) > quarters) {
      quarters = (int) (share * 4);
      err.printf(
          Locale.ROOT, "%3.0f %%  %.2f of %.2f GB%n", 100 * share, moved / 1e9, total / 1e9);
      err.flush();
    }
  }

  @Override
  public synchronized void close() {
    if (drawn) {
      err.println();
      err.flush();
    }
  }
}
