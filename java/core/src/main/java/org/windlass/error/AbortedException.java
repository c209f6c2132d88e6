// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/**
 * The failure of an operation that someone ended; the message carries the reason. The communicator
 * is dead, unless the thread was interrupted in {@link org.windlass.Operation#await}, which ends
 * that wait alone.
 */
public final class AbortedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public AbortedException(String message) {
    this(message, null, "", List.of());
  }

  /** The same, with what led to it. */
  public AbortedException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** The same, with the ranks at fault. */
  public AbortedException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public AbortedException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.ABORTED, message, cause, operation, faultyRanks);
  }
}
