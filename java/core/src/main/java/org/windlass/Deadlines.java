// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.Objects;

/** Durations as the C ABI takes them. */
final class Deadlines {
  /** Stands for the communicator's own deadline. */
  static final long DEFAULT = 0;

  private Deadlines() {}

  /** Nanoseconds, at least 1 and at most what a long holds. */
  static long nanos(Duration deadline) {
    Objects.requireNonNull(deadline, "deadline");
    if (deadline.isNegative() || deadline.isZero()) {
      throw new InvalidArgumentException("deadline is " + deadline + "; it must be positive");
    }
    try {
      return deadline.toNanos();
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE; // 292 years
    }
  }
}
