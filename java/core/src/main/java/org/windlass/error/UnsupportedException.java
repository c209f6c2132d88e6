// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown when a target, dtype or feature is not available in this build or on this machine.
 * Windlass never falls back silently to a slower one.
 */
public final class UnsupportedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public UnsupportedException(String message) {
    this(message, null, "", List.of());
  }

  /** Makes the exception with the failure that caused it. */
  public UnsupportedException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** Makes the exception with the faulty ranks. */
  public UnsupportedException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public UnsupportedException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.UNSUPPORTED, message, cause, operation, faultyRanks);
  }
}
