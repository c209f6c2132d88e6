// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown by a call that is not valid as written. No data was sent. */
public final class InvalidArgumentException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public InvalidArgumentException(String message) {
    this(message, null, "", List.of());
  }

  public InvalidArgumentException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public InvalidArgumentException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  public InvalidArgumentException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.INVALID_ARGUMENT, message, cause, operation, faultyRanks);
  }
}
