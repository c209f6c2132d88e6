// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown when a device, such as a GPU, fails. The communicator is dead. */
public final class DeviceException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public DeviceException(String message) {
    this(message, null);
  }

  public DeviceException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public DeviceException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.DEVICE, message, cause, operation, faultyRanks);
  }
}
