// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import org.jspecify.annotations.Nullable;

/**
 * The two threads of a communicator. One runs the calls that must not run on their caller's thread.
 * The other waits for the end of operations on streams. Each starts with its first call.
 */
final class OwnThreads {
  private final int rank;

  final CallQueue calls;

  private volatile @Nullable CallQueue streams;

  private volatile @Nullable OwnThreads origin;

  private volatile boolean areUsed;

  private volatile @Nullable Thread waiter;

  OwnThreads(int rank) {
    this.rank = rank;
    this.calls = new CallQueue("windlass-calls-" + rank, this::noteUse);
  }

  CallQueue streams() {
    CallQueue made = streams;
    if (made == null) {
      synchronized (this) {
        if (streams == null) {
          streams = new CallQueue("windlass-streams-" + rank, this::noteUse);
        }
        made = streams;
      }
    }
    return made;
  }

  void noteUse() {
    for (OwnThreads each = this; each != null; each = each.origin) {
      each.areUsed = true;
    }
  }

  void cameFrom(OwnThreads other) {
    origin = other;
  }

  boolean areUsed() {
    return areUsed;
  }

  /** Records the thread that waits in {@link PendingCall#join}, or null after the wait. */
  void waits(@Nullable Thread caller) {
    waiter = caller;
  }

  boolean hasQueuedBeside(Thread caller) {
    return calls.hasCalls() && waiter != caller;
  }

  synchronized void shutdown() {
    calls.shutdown();
    if (streams != null) {
      streams.shutdown();
    }
  }
}
