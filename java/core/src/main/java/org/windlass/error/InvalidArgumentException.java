// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/** The refusal of a call that cannot be carried out as written. Nothing was sent. */
public final class InvalidArgumentException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public InvalidArgumentException(String message) {
    this(message, null, "", List.of());
  }

  /** The same, with what led to it. */
  public InvalidArgumentException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** The same, with the ranks at fault. */
  public InvalidArgumentException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public InvalidArgumentException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.INVALID_ARGUMENT, message, cause, operation, faultyRanks);
  }
}
