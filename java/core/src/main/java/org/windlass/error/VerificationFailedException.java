// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/** The proof that what arrived is not what was sent. */
public final class VerificationFailedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public VerificationFailedException(String message) {
    this(message, null);
  }

  /** The same, with what led to it. */
  public VerificationFailedException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public VerificationFailedException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.VERIFICATION_FAILED, message, cause, operation, faultyRanks);
  }
}
