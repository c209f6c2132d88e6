// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when the data that arrived differs from the data that was sent. */
public final class VerificationFailedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public VerificationFailedException(String message) {
    this(message, null);
  }

  /** Makes the exception with the failure that caused it. */
  public VerificationFailedException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public VerificationFailedException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.VERIFICATION_FAILED, message, cause, operation, faultyRanks);
  }
}
