// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.concurrent.TimeUnit;
import org.windlass.internal.Log;

/**
 * Logs the connections and members that a server refuses, to the logger {@code org.windlass}. Logs
 * at most {@link #LINES} lines a minute, and the number of refusals that were not logged. Only one
 * thread at a time may call it.
 */
final class RefusalLog {
  static final int LINES = 16;

  private static final long MINUTE_NS = TimeUnit.MINUTES.toNanos(1);

  private final String store;
  private long beginNs = System.nanoTime();
  private int lines;
  private long untold;

  RefusalLog(String address) {
    store = "store " + address;
  }

  void warn(String peer, String why) {
    long now = System.nanoTime();
    if (now - beginNs > MINUTE_NS) {
      beginNs = now;
      lines = 0;
    }
    if (lines == LINES) {
      untold++;
      return;
    }
    lines++;
    tellRest();
    Log.warn("{0}: turned {1} away: {2}", store, peer, why);
  }

  void tellRest() {
    if (untold > 0) {
      Log.warn("{0}: turned {1} more away", store, untold);
      untold = 0;
    }
  }
}
