// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The deadline of a call, or of several calls that share one. If it is the default deadline, each
 * operation uses the deadline of its own communicator.
 *
 * @param startNs time at which the deadline began, by {@link System#nanoTime}
 * @param limitNs nanoseconds that the calls may take, or {@link #DEFAULT}
 */
public record Deadline(long startNs, long limitNs) {
  /** Value for a call without a deadline. The communicator's own deadline then applies. */
  public static final long DEFAULT = 0;

  /** Upper bound of times, so that sums of times don't overflow. */
  private static final long LONGEST_NS = Long.MAX_VALUE / 4;

  /** Returns a deadline that begins now. Throws InvalidArgument if it is not positive. */
  public static Deadline of(Duration deadline) {
    return of(nanos(deadline));
  }

  /**
   * Returns a deadline of {@code deadlineNs} nanoseconds that begins now. 0 gives the default
   * deadline.
   */
  public static Deadline of(long deadlineNs) {
    return new Deadline(System.nanoTime(), deadlineNs);
  }

  /** Returns the time that the calls may take together. */
  public Duration deadline() {
    return Duration.ofNanos(limitNs);
  }

  /** Returns the remaining nanoseconds, at least 1; {@link #DEFAULT} for the default deadline. */
  public long leftNs() {
    return limitNs == DEFAULT ? DEFAULT : Math.max(1, restNs());
  }

  private long restNs() {
    return limitNs - (System.nanoTime() - startNs);
  }

  /**
   * Returns the remaining time, at least 1 nanosecond. Must not be called on the default deadline.
   */
  public Duration left() {
    return Duration.ofNanos(leftNs());
  }

  /** Returns the remaining time, but at most {@code most}. */
  public Duration left(Duration most) {
    Duration left = left();
    return left.compareTo(most) < 0 ? left : most;
  }

  /** Returns true if the deadline has passed; false for the default one. */
  public boolean isOver() {
    return limitNs != DEFAULT && restNs() <= 0;
  }

  /** Returns a deadline that is later by {@code more}. The default deadline stays unchanged. */
  public Deadline later(Duration more) {
    return limitNs == DEFAULT ? this : of(Math.min(leftNs(), LONGEST_NS) + more.toNanos());
  }

  /**
   * Returns this deadline, or one at {@code least} from now if that is later. The default deadline
   * stays unchanged.
   */
  public Deadline orLonger(Duration least) {
    return limitNs == DEFAULT || leftNs() >= least.toNanos() ? this : of(least);
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
