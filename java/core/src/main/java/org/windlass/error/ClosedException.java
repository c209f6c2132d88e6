// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown by a call on an object that was closed. */
public final class ClosedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public ClosedException(String message) {
    this(message, null);
  }

  public ClosedException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public ClosedException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.CLOSED, message, cause, operation, faultyRanks);
  }
}
