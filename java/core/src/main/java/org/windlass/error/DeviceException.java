// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;

/** A fault of the device. The communicator is dead. */
public final class DeviceException extends WindlassException {
  private static final long serialVersionUID = 1L;

  /** {@code message} says what happened, where and what to do. */
  public DeviceException(String message) {
    this(message, null);
  }

  /** The same, with what led to it. */
  public DeviceException(String message, Throwable cause) {
    this(message, cause, "", List.of());
  }

  /**
   * Makes the exception of an operation that ranks take part in.
   *
   * @param operation the operation in which the failure was observed
   * @param faultyRanks the ranks at fault
   */
  public DeviceException(
      String message, Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.DEVICE, message, cause, operation, faultyRanks);
  }
}
