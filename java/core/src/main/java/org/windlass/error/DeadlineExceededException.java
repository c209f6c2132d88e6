// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/**
 * The failure of a call whose deadline passed; the message names the ranks that are behind. The
 * communicator is dead, unless it was the limit of {@link
 * org.windlass.Operation#await(java.time.Duration)}, which ends that wait alone.
 */
public final class DeadlineExceededException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public DeadlineExceededException(String message) {
    this(message, null, "", List.of());
  }

  /** The same, with what led to it. */
  public DeadlineExceededException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** The same, with the ranks at fault. */
  public DeadlineExceededException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public DeadlineExceededException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.DEADLINE_EXCEEDED, message, cause, operation, faultyRanks);
  }
}
