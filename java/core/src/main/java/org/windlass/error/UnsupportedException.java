// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/** The lack of a target, dtype or feature here, which is never emulated silently. */
public final class UnsupportedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public UnsupportedException(String message) {
    this(message, null, "", List.of());
  }

  /** The same, with what led to it. */
  public UnsupportedException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** The same, with the ranks at fault. */
  public UnsupportedException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public UnsupportedException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.UNSUPPORTED, message, cause, operation, faultyRanks);
  }
}
