// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.time.Duration;
import org.windlass.Collectives;
import org.windlass.Communicator;
import org.windlass.internal.Deadline;

/**
 * A deadline that several operations share, or none. Without one, each operation has its
 * communicator's own deadline; this is called the default deadline.
 */
public final class Until {
  /** Upper bound of times, so that sums of times don't overflow. */
  private static final long LONGEST_NS = Long.MAX_VALUE / 4;

  private final boolean isDefault;
  private final long endNs;

  /**
   * Creates a deadline that starts now.
   *
   * @param deadlineNs nanoseconds, or {@link Deadline#DEFAULT} for the default deadline
   */
  public Until(long deadlineNs) {
    isDefault = deadlineNs == Deadline.DEFAULT;
    endNs = System.nanoTime() + deadlineNs;
  }

  /** Returns a deadline later by {@code more}, or the default deadline unchanged. */
  public Until later(Duration more) {
    return isDefault ? this : new Until(Math.min(leftNs(), LONGEST_NS) + more.toNanos());
  }

  /** Returns the later of this deadline and {@code least} from now; the default one unchanged. */
  public Until orLonger(Duration least) {
    return isDefault || leftNs() >= least.toNanos() ? this : new Until(least.toNanos());
  }

  /** Returns true if the deadline has passed. Returns false for the default deadline. */
  public boolean isOver() {
    return !isDefault && System.nanoTime() - endNs >= 0;
  }

  /** Returns the nanoseconds left, at least 1; {@link Deadline#DEFAULT} for the default one. */
  public long leftNs() {
    return isDefault ? Deadline.DEFAULT : Math.max(1, endNs - System.nanoTime());
  }

  /** Returns the time left. Must not be called for the default deadline. */
  public Duration left() {
    return Duration.ofNanos(leftNs());
  }

  /** Returns the nanoseconds left, at least 1, for the next operation of {@code communicator}. */
  public long leftNs(Communicator communicator) {
    return isDefault ? Deadline.nanos(communicator.deadline()) : leftNs();
  }

  /** Returns the operations of {@code communicator} with the time left as their deadline. */
  public Collectives on(Communicator communicator) {
    return isDefault ? communicator : communicator.withDeadline(Duration.ofNanos(leftNs()));
  }
}
