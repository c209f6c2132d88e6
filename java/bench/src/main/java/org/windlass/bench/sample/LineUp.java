// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import org.windlass.Communicator;
import org.windlass.bench.data.SharedWords;
import org.windlass.error.DeadlineExceededException;

/**
 * Makes all ranks, which are threads or processes, start a sample at the same time. It uses only an
 * atomic counter and a word that the last rank changes, so it favours none of the measured
 * libraries.
 */
public final class LineUp {
  /** Number of {@link SharedWords} that a line-up uses. */
  public static final int WORDS = 2;

  private static final int ARRIVED = 0;
  private static final int SENSE = 1;

  /** Time in nanoseconds that a rank spins before it yields, if each rank has a core. */
  private static final long SPIN_NS = 2_000;

  /** Number of polls after which a rank checks whether the others can still arrive. */
  private static final int PATIENCE = 4096;

  private final SharedWords words;
  private final Communicator member;
  private final int parties;
  private final long spinNs;

  /**
   * Creates a line-up for all ranks of a communicator. The ranks of a process share one object.
   *
   * @param words at least {@link #WORDS}, used only by this line-up
   * @param member any rank of the communicator
   * @param cores cores that the ranks share; a rank spins before it yields only if each has a core
   */
  public LineUp(SharedWords words, Communicator member, int cores) {
    this.words = words;
    this.member = member;
    this.parties = member.size();
    this.spinNs = parties <= cores ? SPIN_NS : 0;
  }

  /**
   * Returns once all ranks have called this the same number of times. Throws if a rank can't
   * arrive.
   */
  public void await() {
    int sense = words.peek(SENSE);
    if (words.increment(ARRIVED) == parties) {
      words.set(ARRIVED, 0);
      words.publish(SENSE, sense + 1);
      return;
    }
    long startNs = System.nanoTime();
    while (spinNs > 0 && System.nanoTime() - startNs < spinNs) {
      if (words.read(SENSE) != sense) {
        return;
      }
      Thread.onSpinWait();
    }
    for (long looks = 1; words.read(SENSE) == sense; looks++) {
      if (looks % PATIENCE == 0) {
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
          "line-up: rank " + member.rank() + " waited " + member.deadline().toMillis() / 1e3
              + " s, and not all of " + parties + " ranks came");
    }
  }
}
