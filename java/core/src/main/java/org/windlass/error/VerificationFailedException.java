// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when the data that arrived differs from the data that was sent. */
public final class VerificationFailedException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public VerificationFailedException(String message) {
    this(message, null);
  }

  public VerificationFailedException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public VerificationFailedException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.VERIFICATION_FAILED, message, cause, operation, faultyRanks);
  }
}
