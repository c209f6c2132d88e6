// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/** A fault of Windlass itself. */
public final class InternalException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public InternalException(String message) {
    this(message, null);
  }

  /** The same, with what led to it. */
  public InternalException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public InternalException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.INTERNAL, message, cause, operation, faultyRanks);
  }
}
