// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when memory or disk space is exhausted, or /dev/shm or a permission is missing. */
public final class ResourceException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public ResourceException(String message) {
    this(message, null, "", List.of());
  }

  /** Makes the exception with the failure that caused it. */
  public ResourceException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /** Makes the exception with the faulty ranks. */
  public ResourceException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public ResourceException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.RESOURCE, message, cause, operation, faultyRanks);
  }
}
