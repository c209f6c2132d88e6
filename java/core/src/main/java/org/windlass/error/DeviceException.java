// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when a device, such as a GPU, fails. The communicator is dead. */
public final class DeviceException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** Makes the exception. {@code message} describes the failure and its remedy. */
  public DeviceException(String message) {
    this(message, null);
  }

  /** Makes the exception with the failure that caused it. */
  public DeviceException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  /**
   * Makes the exception for a failure in an operation of several ranks.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the faulty ranks
   */
  public DeviceException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.DEVICE, message, cause, operation, faultyRanks);
  }
}
