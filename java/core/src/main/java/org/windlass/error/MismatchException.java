// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when ranks disagree about an operation. The message shows what each of two ranks has
 * passed. The communicator is dead, unless the method says otherwise.
 */
public final class MismatchException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public MismatchException(String message) {
    this(message, null, "", List.of());
  }

  /** Makes the exception with the failure that caused it. */
  public MismatchException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** Makes the exception with the faulty ranks. */
  public MismatchException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public MismatchException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.MISMATCH, message, cause, operation, faultyRanks);
  }
}
