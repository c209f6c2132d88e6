// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.time.Duration;
import org.windlass.Collectives;
import org.windlass.Communicator;
import org.windlass.internal.Deadline;

/** The one deadline of several operations in a row, or of each its communicator's own. */
public final class Until {
  /** So that sums of times don't overflow. */
  private static final long LONGEST_NS = Long.MAX_VALUE / 4;

  private final boolean isDefault;
  private final long endNs;

  /**
   * From now on.
   *
   * @param deadlineNs {@link Deadline#DEFAULT} gives each operation the communicator's own
   */
  public Until(long deadlineNs) {
    isDefault = deadlineNs == Deadline.DEFAULT;
    endNs = System.nanoTime() + deadlineNs;
  }

  /** So much later than this; the communicators' own stays so. */
  public Until later(Duration more) {
    return isDefault ? this : new Until(Math.min(leftNs(), LONGEST_NS) + more.toNanos());
  }

  /** This, or so much from now on where that is later; the communicators' own stays so. */
  public Until orLonger(Duration least) {
    return isDefault || leftNs() >= least.toNanos() ? this : new Until(least.toNanos());
  }

  /** Whether nothing is left; the communicators' own never ends by this clock. */
  public boolean isOver() {
    return !isDefault && System.nanoTime() - endNs >= 0;
  }

  /** What is left for the next operation, at least 1 ns, as the C ABI takes it. */
  public long leftNs() {
    return isDefault ? Deadline.DEFAULT : Math.max(1, endNs - System.nanoTime());
  }

  /** The same where it is not the communicators' own. */
  public Duration left() {
    return Duration.ofNanos(leftNs());
  }

  /** What is left, at least 1 ns, of an operation of {@code communicator}. */
  public long leftNs(Communicator communicator) {
    return isDefault ? Deadline.nanos(communicator.deadline()) : leftNs();
  }

  /** The communicator's operations under what is left. */
  public Collectives on(Communicator communicator) {
    return isDefault ? communicator : communicator.within(Duration.ofNanos(leftNs()));
  }
}
