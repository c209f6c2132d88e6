// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when the failure of a rank or a call such as {@link org.windlass.Communicator#abort} has
 * ended the operation. The message has the reason. The communicator is dead, unless the thread was
 * interrupted in {@link org.windlass.Operation#await}. Such an interrupt ends only that wait.
 */
public final class AbortedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public AbortedException(String message) {
    this(message, null, "", List.of());
  }

  /** Makes the exception with the failure that caused it. */
  public AbortedException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** Makes the exception with the faulty ranks. */
  public AbortedException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public AbortedException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.ABORTED, message, cause, operation, faultyRanks);
  }
}
