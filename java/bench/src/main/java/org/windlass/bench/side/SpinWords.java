// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Counters that threads increase and wait for. Each has two cache lines of its own. If each thread
 * has a core, a waiting thread pauses before it yields. Otherwise it yields at once. Counters may
 * wrap.
 */
final class SpinWords {
  private static final VarHandle WORD = MethodHandles.arrayElementVarHandle(int[].class);
  private static final int PAD = 32;
  private static final int PAUSES = 1000;

  private final int[] words;
  private final int pauses;

  SpinWords(int count, boolean coreForEach) {
    this.words = new int[(count + 2) * PAD];
    this.pauses = coreForEach ? PAUSES : 0;
  }

  /** Returns the word's value without ordering guarantees. */
  int peek(int word) {
    return (int) WORD.getOpaque(words, (word + 1) * PAD);
  }

  /** Sets the word, and publishes all earlier writes of this thread. */
  void publish(int word, int value) {
    WORD.setRelease(words, (word + 1) * PAD, value);
  }

  /** Adds one and returns the sum. The addition is ordered with those of all other threads. */
  int increment(int word) {
    return (int) WORD.getAndAdd(words, (word + 1) * PAD, 1) + 1;
  }

  /**
   * Returns once the word is at least {@code value}. The writes before the publication of that
   * value are then visible.
   */
  void await(int word, int value) {
    for (int looks = 0; (int) WORD.getAcquire(words, (word + 1) * PAD) - value < 0; looks++) {
      if (looks < pauses) {
        Thread.onSpinWait();
      } else {
        Thread.yield();
      }
    }
  }
}
