// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Counters that threads raise and wait for, each alone in two cache lines. A waiting thread pauses
 * before it yields where each thread has a core, and yields at once where not. Counters may wrap.
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

  /** What this thread knows of the word; orders nothing. */
  int peek(int word) {
    return (int) WORD.getOpaque(words, (word + 1) * PAD);
  }

  /** Publishes what this thread has written before. */
  void publish(int word, int value) {
    WORD.setRelease(words, (word + 1) * PAD, value);
  }

  /** Adds one, ordered with every other thread's addition, and returns the sum. */
  int increment(int word) {
    return (int) WORD.getAndAdd(words, (word + 1) * PAD, 1) + 1;
  }

  /** Returns once the word has reached {@code value}, and sees what was written before that. */
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
