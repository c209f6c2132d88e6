// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.time.Duration;

/**
 * The end of a call, or of several that share a deadline.
 *
 * @param deadline as the caller gave it
 * @param startNs when it began
 * @param limitNs how long it may take
 */
public record Until(Duration deadline, long startNs, long limitNs) {
  /**
   * From now on.
   *
   * @param failures makes what is thrown for a deadline that is not positive
   */
  public static Until of(Duration deadline, FailureMaker failures) {
    return new Until(deadline, System.nanoTime(), Deadlines.nanos(deadline, failures));
  }

  /** From now on; {@code deadline} is positive. */
  public static Until of(Duration deadline) {
    return new Until(deadline, System.nanoTime(), deadline.toNanos());
  }

  /** What is left; 0 or less where it has passed. */
  public long leftNs() {
    return limitNs - (System.nanoTime() - startNs);
  }

  /** What is left, at least a moment, as calls take it. */
  public Duration left() {
    return Duration.ofNanos(Math.max(1, leftNs()));
  }

  /** The same, but no more than {@code most}. */
  public Duration left(Duration most) {
    Duration left = left();
    return left.compareTo(most) < 0 ? left : most;
  }

  public boolean isOver() {
    return leftNs() <= 0;
  }
}
