// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.memory.Lifetime;

/**
 * Keeps memory pinned after the call that used it has ended. Memory of failed calls stays pinned
 * until no rank can access it. Memory of calls that a CUDA graph has captured stays pinned until
 * this rank has left the communicator. Thread-safe.
 */
final class LeftPins {
  private final CommHandle comm;

  /** Pinned memory of failed calls. The communicator stays pinned while the list is not empty. */
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

  synchronized void capture(@Nullable Lifetime a, @Nullable Lifetime b) {
    if (a != null) {
      captured.add(a);
    }
    if (b != null && b != a) {
      captured.add(b);
    }
  }

  synchronized boolean hasFailed() {
    return !failed.isEmpty();
  }

  /** Unpins the memory of failed calls if no rank can access it any more. */
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
    pinned.forEach(Lifetime::unpin);
  }

  private static List<Lifetime> taken(List<Lifetime> pins) {
    List<Lifetime> taken = new ArrayList<>(pins);
    pins.clear();
    return taken;
  }
}
