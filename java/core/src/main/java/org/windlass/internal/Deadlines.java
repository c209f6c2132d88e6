// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.time.Duration;
import java.util.Objects;

/** Durations as the C ABI takes them. */
public final class Deadlines {
  /** Stands for the communicator's own deadline. */
  public static final long DEFAULT = 0;

  private Deadlines() {}

  /**
   * Nanoseconds, at least 1 and at most what a long holds.
   *
   * @param failures makes what is thrown for a deadline that is not positive
   */
  public static long nanos(Duration deadline, FailureMaker failures) {
    Objects.requireNonNull(deadline, "deadline");
    if (deadline.isNegative() || deadline.isZero()) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT, "deadline is " + deadline + "; it must be positive");
    }
    try {
      return deadline.toNanos();
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE; // 292 years
    }
  }
}
