// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import org.windlass.Communicator;
import org.windlass.DeadlineExceededException;

/**
 * The place where ranks meet before a sample, threads or processes. It is neutral: one atomic
 * counter, one sense word, no protocol of the library under measurement.
 */
final class LineUp {
  /** Of {@link SharedWords}. */
  static final int WORDS = 2;

  private static final int ARRIVED = 0;
  private static final int SENSE = 1;

  private static final int PAUSES = 1000;

  /** From which on it is looked now and then whether the others can still come. */
  private static final int PATIENCE = 4096;

  private final SharedWords words;
  private final Communicator member;
  private final int parties;
  private final int pauses;

  /**
   * A place for all ranks of a communicator, one object for those of a process.
   *
   * @param words {@link #WORDS} or more, of this alone
   * @param member any rank of the communicator
   * @param cores cores that the ranks share; one pauses before it yields only where each has one
   */
  LineUp(SharedWords words, Communicator member, int cores) {
    this.words = words;
    this.member = member;
    this.parties = member.size();
    this.pauses = parties <= cores ? PAUSES : 0;
  }

  /**
   * Returns once all ranks have called it as often as this one has.
   *
   * @throws org.windlass.WindlassException what has ended the communicator, since a rank will not
   *     come then
   */
  void meet() {
    int sense = words.peek(SENSE);
    if (words.increment(ARRIVED) == parties) {
      words.set(ARRIVED, 0);
      words.publish(SENSE, sense + 1);
      return;
    }
    long startNs = 0;
    for (long looks = 0; words.read(SENSE) == sense; looks++) {
      if (looks < pauses) {
        Thread.onSpinWait();
        continue;
      }
      if (looks % PATIENCE == PATIENCE - 1) {
        startNs = startNs == 0 ? System.nanoTime() : startNs;
        requireOthers(System.nanoTime() - startNs);
      }
      Thread.yield();
    }
  }

  private void requireOthers(long waitedNs) {
    member
        .failure()
        .ifPresent(
            failure -> {
              throw failure;
            });
    if (waitedNs > member.deadline().toNanos()) {
      throw new DeadlineExceededException(
          "the line-up of rank "
              + member.rank()
              + " with all of "
              + parties
              + " ranks: not all came within "
              + member.deadline().toSeconds()
              + " s");
    }
  }
}
