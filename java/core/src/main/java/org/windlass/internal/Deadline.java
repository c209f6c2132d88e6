// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The deadline of a call, or of several calls that share one.
 *
 * @param deadline the duration that the caller gave
 * @param startNs time at which the deadline began, by {@link System#nanoTime}
 * @param limitNs time that the calls may take, in nanoseconds
 */
public record Deadline(Duration deadline, long startNs, long limitNs) {
  /** Value for a call without a deadline. The communicator's own deadline then applies. */
  public static final long DEFAULT = 0;

  /** Returns a deadline that begins now. Throws InvalidArgument if it is not positive. */
  public static Deadline of(Duration deadline) {
    return new Deadline(deadline, System.nanoTime(), nanos(deadline));
  }

  /** Returns the remaining nanoseconds: 0 or less after the deadline has passed. */
  public long leftNs() {
    return limitNs - (System.nanoTime() - startNs);
  }

  /** Returns the remaining time, but at least 1 nanosecond, as calls require it. */
  public Duration left() {
    return Duration.ofNanos(Math.max(1, leftNs()));
  }

  /** Returns the remaining time, but at most {@code most}. */
  public Duration left(Duration most) {
    Duration left = left();
    return left.compareTo(most) < 0 ? left : most;
  }

  public boolean isOver() {
    return leftNs() <= 0;
  }

  /**
   * Returns {@code deadline} in nanoseconds: at least 1, at most {@link Long#MAX_VALUE}. Throws
   * InvalidArgument if it is not positive.
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

  /** Formats a time for messages: {@code 4.66 s}, {@code 20 ms}, {@code 1 us}. */
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

  private static String decimals(long thousandths) {
    return BigDecimal.valueOf(thousandths, 3).stripTrailingZeros().toPlainString();
  }
}
