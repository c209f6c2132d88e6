// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.windlass.error.WindlassException;

public final class Failures {
  private Failures() {}

  /** Throws the exception in the error record of {@code scratch} if {@code code} is not Ok. */
  public static void check(int code, Scratch scratch) {
    if (code != Native.WL_OK) {
      throw of(code, scratch.errorBuffer());
    }
  }

  /**
   * Returns the exception for an error record of the C ABI.
   *
   * @param code a {@code wl_code}
   * @param error starts with a {@code wl_error_t}, which has the message, the operation and the
   *     faulty ranks
   */
  public static WindlassException of(int code, ByteBuffer error) {
    int operation = error.getInt(Structs.Error.OPERATION);
    String message = Structs.text(error, Structs.Error.MESSAGE, Native.WL_ERROR_MESSAGE);
    return WindlassException.of(code, message, null, operation(operation), faultyRanks(error));
  }

  /** Returns {@code failure} with {@code operation} as the operation that failed. */
  public static WindlassException within(String operation, WindlassException failure) {
    WindlassException whole =
        WindlassException.of(
            failure.code().number(),
            operation + ": " + failure.getMessage(),
            failure.getCause(),
            operation,
            failure.faultyRanks());
    whole.setStackTrace(failure.getStackTrace());
    for (Throwable suppressed : failure.getSuppressed()) {
      whole.addSuppressed(suppressed);
    }
    return whole;
  }

  private static String operation(int operation) {
    return operation == Native.WL_OP_NONE ? "" : Native.wl_operation_name(operation);
  }

  private static List<Integer> faultyRanks(ByteBuffer error) {
    int count = Math.min(error.getInt(Structs.Error.FAULTY_RANK_COUNT), Native.WL_ERROR_FAULTY_RANKS);
    List<Integer> faultyRanks = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      faultyRanks.add(error.getInt(Structs.Error.FAULTY_RANKS + 4 * i));
    }
    return faultyRanks;
  }
}
