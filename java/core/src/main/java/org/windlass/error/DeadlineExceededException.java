// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Thrown by a call that did not complete before its deadline. The message names the ranks that are
 * behind. The communicator is dead, unless the deadline was that of {@link
 * org.windlass.Operation#await(java.time.Duration)}. Such a deadline ends only that wait.
 */
public final class DeadlineExceededException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public DeadlineExceededException(String message) {
    this(message, null, "", List.of());
  }

  public DeadlineExceededException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public DeadlineExceededException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  public DeadlineExceededException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.DEADLINE_EXCEEDED, message, cause, operation, faultyRanks);
  }
}
