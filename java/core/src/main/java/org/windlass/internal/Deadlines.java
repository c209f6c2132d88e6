// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.math.BigDecimal;
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
          Native.WL_INVALID_ARGUMENT, "deadline is " + text(deadline) + "; it must be positive");
    }
    try {
      return deadline.toNanos();
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE; // 292 years
    }
  }

  /** A time as messages have it: {@code 4.66 s}, {@code 20 ms}, {@code 1 us}. */
  public static String text(Duration time) {
    long seconds = time.getSeconds();
    if (time.isZero() || seconds >= 1000 || seconds <= -1000) {
      return seconds + " s";
    }
    long nanos = time.toNanos();
    long length = Math.abs(nanos);
    if (length >= 1_000_000_000) {
      return decimals(nanos / 1_000_000) + " s";
    }
    if (length >= 1_000_000) {
      return decimals(nanos / 1000) + " ms";
    }
    return length >= 1000 ? decimals(nanos) + " us" : nanos + " ns";
  }

  /** So many thousandths. */
  private static String decimals(long thousandths) {
    return BigDecimal.valueOf(thousandths, 3).stripTrailingZeros().toPlainString();
  }
}
