// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/** The failure of a call on what was closed. */
public final class ClosedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public ClosedException(String message) {
    this(message, null);
  }

  /** The same, with what led to it. */
  public ClosedException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public ClosedException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.CLOSED, message, cause, operation, faultyRanks);
  }
}
