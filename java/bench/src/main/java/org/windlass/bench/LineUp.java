// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The place where ranks meet before a sample. It is neutral: one atomic counter, one sense word,
 * nothing of the library under measurement. Each word stands alone in two cache lines.
 */
final class LineUp {
  private static final VarHandle WORD = MethodHandles.arrayElementVarHandle(int[].class);
  private static final int PAUSES = 1000;
  private static final int ARRIVED = 32;
  private static final int SENSE = 64;
  private static final int CANCELLED = 96;

  private final int[] words = new int[128];
  private final int parties;
  private final int pauses;

  /**
   * @param parties how many threads meet
   * @param cores cores that they share; a thread pauses before it yields only where each has one
   */
  LineUp(int parties, int cores) {
    this.parties = parties;
    this.pauses = parties <= cores ? PAUSES : 0;
  }

  /** Returns once all parties have called it as often as this one has. */
  void meet() {
    int sense = (int) WORD.getOpaque(words, SENSE);
    if ((int) WORD.getAndAdd(words, ARRIVED, 1) + 1 == parties) {
      WORD.setOpaque(words, ARRIVED, 0);
      WORD.setRelease(words, SENSE, sense + 1);
      return;
    }
    for (int looks = 0; (int) WORD.getAcquire(words, SENSE) == sense; looks++) {
      if (looks < pauses) {
        Thread.onSpinWait();
      } else {
        if ((int) WORD.getOpaque(words, CANCELLED) != 0) {
          throw new Cancelled();
        }
        Thread.yield();
      }
    }
  }

  /** Lets everyone who waits here, now or later, go with {@link Cancelled}: a rank has failed. */
  void cancel() {
    WORD.setVolatile(words, CANCELLED, 1);
  }

  /** A rank that will not come has ended the line-up. */
  static final class Cancelled extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Cancelled() {
      super("another rank has failed", null, false, false);
    }
  }
}
