// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown by a call that did not complete before its deadline. The message names the ranks that are
 * behind. The communicator is dead, unless the deadline was that of {@link
 * org.windlass.Operation#await(java.time.Duration)}. Such a deadline ends only that wait.
 */
public final class DeadlineExceededException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public DeadlineExceededException(String message) {
    this(message, null, "", List.of());
  }

  /** Makes the exception with the failure that caused it. */
  public DeadlineExceededException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** Makes the exception with the faulty ranks. */
  public DeadlineExceededException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public DeadlineExceededException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.DEADLINE_EXCEEDED, message, cause, operation, faultyRanks);
  }
}
