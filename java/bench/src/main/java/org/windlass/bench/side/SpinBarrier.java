// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

/**
 * A barrier of threads. If each thread has a core, every thread raises its own word and polls all
 * other words. Otherwise a counter counts the arrivals, and the last thread releases all others. So
 * a rank that gets a core reads only two words.
 */
final class SpinBarrier {
  private static final int ARRIVED = 0;
  private static final int RELEASED = 1;

  private final int ranks;
  private final boolean coreForEach;
  private final SpinWords words;

  SpinBarrier(int ranks, boolean coreForEach) {
    this.ranks = ranks;
    this.coreForEach = coreForEach;
    this.words = new SpinWords(Math.max(2, ranks), coreForEach);
  }

  /** Returns once all ranks have called this the same number of times as {@code rank}. */
  void await(int rank) {
    if (coreForEach) {
      int turn = words.peek(rank) + 1;
      words.publish(rank, turn);
      for (int peer = 0; peer < ranks; peer++) {
        words.await(peer, turn);
      }
    } else {
      int turn = words.peek(RELEASED) + 1;
      if (words.increment(ARRIVED) == turn * ranks) {
        words.publish(RELEASED, turn);
      } else {
        words.await(RELEASED, turn);
      }
    }
  }
}
