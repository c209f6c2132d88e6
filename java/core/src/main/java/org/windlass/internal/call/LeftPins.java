// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.ArrayList;
import java.util.List;
import org.windlass.internal.memory.Lifetime;

/**
 * The pins that calls leave behind: those of failed calls, until no rank can touch their memory any
 * more, and those of calls that a CUDA graph holds, until this rank has left the communicator. Any
 * thread.
 */
final class LeftPins {
  private final CommHandle comm;

  /** Pins of failed calls. The handle is pinned while there are any. */
  private final List<Lifetime> failed = new ArrayList<>();

  private final List<Lifetime> captured = new ArrayList<>();

  LeftPins(CommHandle comm) {
    this.comm = comm;
  }

  /** Keeps {@code pinned} until no rank can touch memory that a failed operation named. */
  synchronized void keep(Lifetime pinned) {
    if (failed.isEmpty()) {
      comm.pin();
    }
    failed.add(pinned);
  }

  /** Keeps {@code a} and {@code b}, each of which may be null, until {@link #releaseCaptured}. */
  synchronized void capture(Lifetime a, Lifetime b) {
    captured.add(a);
    captured.add(b == a ? null : b);
  }

  synchronized boolean hasFailed() {
    return !failed.isEmpty();
  }

  /** Takes the pins of failed calls back if no rank can touch their memory any more. */
  void drain() {
    List<Lifetime> quiet;
    synchronized (this) {
      if (failed.isEmpty() || !comm.isQuiescent()) {
        return;
      }
      quiet = taken(failed);
    }
    quiet.forEach(Lifetime::unpin);
    comm.unpin();
  }

  /** Takes the pins of captured calls back. */
  void releaseCaptured() {
    List<Lifetime> pinned;
    synchronized (this) {
      pinned = taken(captured);
    }
    for (Lifetime each : pinned) {
      if (each != null) {
        each.unpin();
      }
    }
  }

  private static List<Lifetime> taken(List<Lifetime> pins) {
    List<Lifetime> taken = new ArrayList<>(pins);
    pins.clear();
    return taken;
  }
}
