// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.ArrayList;
import java.util.List;
import org.windlass.internal.memory.Lifetime;

/**
 * Holds the pins of memory after its call has ended. Pins of failed calls last until no rank can
 * access their memory. Pins of calls that a CUDA graph has captured last until this rank has left
 * the communicator. Thread-safe.
 */
final class LeftPins {
  private final CommHandle comm;

  /** Pins of failed calls. The handle is pinned while the list is not empty. */
  private final List<Lifetime> failed = new ArrayList<>();

  private final List<Lifetime> captured = new ArrayList<>();

  LeftPins(CommHandle comm) {
    this.comm = comm;
  }

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

  /** Releases the pins of failed calls if no rank can access their memory any more. */
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
