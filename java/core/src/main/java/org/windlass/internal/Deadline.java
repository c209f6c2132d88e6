// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The deadline of a call, or of several that share one, and when it ends.
 *
 * @param deadline as the caller gave it
 * @param startNs when it began
 * @param limitNs how long it may take
 */
public record Deadline(Duration deadline, long startNs, long limitNs) {
  /** Stands for the communicator's own, as the C ABI takes it. */
  public static final long DEFAULT = 0;

  /**
   * From now on.
   *
   * @throws WindlassException for a deadline that is not positive
   */
  public static Deadline of(Duration deadline) {
    return new Deadline(deadline, System.nanoTime(), nanos(deadline));
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

  /**
   * Nanoseconds as the C ABI takes them, at least 1 and at most what a long holds.
   *
   * @throws WindlassException for a deadline that is not positive
   */
  public static long nanos(Duration deadline) {
    Objects.requireNonNull(deadline, "deadline");
    if (deadline.isNegative() || deadline.isZero()) {
      throw new InvalidArgumentException("deadline is " + text(deadline) + "; it must be positive");
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
