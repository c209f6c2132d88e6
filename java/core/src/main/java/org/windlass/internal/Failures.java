// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.windlass.error.WindlassException;

/** The error records of the C ABI, as exceptions. */
public final class Failures {
  private Failures() {}

  /** Returns if {@code code} is Ok; else throws what the record of {@code scratch} says. */
  public static void check(int code, Scratch scratch) {
    if (code != Native.WL_OK) {
      throw of(code, scratch.errorBuffer());
    }
  }

  /**
   * The exception for {@code code}, with what the {@code wl_error_t} at the start of {@code error}
   * says.
   */
  public static WindlassException of(int code, ByteBuffer error) {
    int operation = error.getInt(Structs.Error.OPERATION);
    String message = Structs.text(error, Structs.Error.MESSAGE, Native.WL_ERROR_MESSAGE);
    return WindlassException.of(code, message, null, operation(operation), faultyRanks(error));
  }

  /** The same failure as seen in {@code operation}, whose part the one that failed was. */
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
