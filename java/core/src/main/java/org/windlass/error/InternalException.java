// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when Windlass itself has a defect. */
public final class InternalException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public InternalException(String message) {
    this(message, null);
  }

  public InternalException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public InternalException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.INTERNAL, message, cause, operation, faultyRanks);
  }
}
