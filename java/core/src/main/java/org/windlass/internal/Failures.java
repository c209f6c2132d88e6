// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.windlass.AbortedException;
import org.windlass.ClosedException;
import org.windlass.DeadlineExceededException;
import org.windlass.DeviceException;
import org.windlass.InternalException;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.PeerLostException;
import org.windlass.ResourceException;
import org.windlass.UnsupportedException;
import org.windlass.VerificationFailedException;
import org.windlass.WindlassException;

/** From a code and an error record of the C ABI to an exception. */
public final class Failures {
  private Failures() {}

  /**
   * The exception for {@code code}, with what the {@code wl_error_t} at the start of {@code error}
   * says.
   */
  public static WindlassException of(int code, ByteBuffer error) {
    int operation = error.getInt(Structs.Error.OPERATION);
    return of(code, message(error), null, operation(operation), culprits(error));
  }

  /** The same failure as seen in {@code operation}, whose part the one that failed was. */
  public static WindlassException within(String operation, WindlassException failure) {
    WindlassException whole =
        of(
            failure.code().number(),
            operation + ": " + failure.getMessage(),
            failure.getCause(),
            operation,
            failure.culprits());
    whole.setStackTrace(failure.getStackTrace());
    for (Throwable suppressed : failure.getSuppressed()) {
      whole.addSuppressed(suppressed);
    }
    return whole;
  }

  private static WindlassException of(
      int code, String message, Throwable cause, String operation, List<Integer> culprits) {
    switch (code) {
      case Native.WL_INVALID_ARGUMENT:
        return new InvalidArgumentException(message, cause, operation, culprits);
      case Native.WL_MISMATCH:
        return new MismatchException(message, cause, operation, culprits);
      case Native.WL_TIMEOUT:
        return new DeadlineExceededException(message, cause, operation, culprits);
      case Native.WL_PEER_LOST:
        return new PeerLostException(message, cause, operation, culprits);
      case Native.WL_ABORTED:
        return new AbortedException(message, cause, operation, culprits);
      case Native.WL_VERIFICATION_FAILED:
        return new VerificationFailedException(message, cause, operation, culprits);
      case Native.WL_UNSUPPORTED:
        return new UnsupportedException(message, cause, operation, culprits);
      case Native.WL_RESOURCE:
        return new ResourceException(message, cause, operation, culprits);
      case Native.WL_CLOSED:
        return new ClosedException(message, cause, operation, culprits);
      case Native.WL_DEVICE:
        return new DeviceException(message, cause, operation, culprits);
      case Native.WL_INTERNAL:
        return new InternalException(message, cause, operation, culprits);
      default:
        return new InternalException(
            "the native library returned the unknown code " + code + ": " + message,
            cause,
            operation,
            culprits);
    }
  }

  private static String operation(int operation) {
    return operation == Native.WL_OP_NONE ? "" : Native.wl_operation_name(operation);
  }

  private static String message(ByteBuffer error) {
    byte[] bytes = new byte[Native.WL_ERROR_MESSAGE];
    int length = 0;
    while (length < bytes.length) {
      byte b = error.get(Structs.Error.MESSAGE + length);
      if (b == 0) {
        break;
      }
      bytes[length++] = b;
    }
    return new String(bytes, 0, length, StandardCharsets.UTF_8);
  }

  private static List<Integer> culprits(ByteBuffer error) {
    int count = Math.min(error.getInt(Structs.Error.CULPRIT_COUNT), Native.WL_ERROR_CULPRITS);
    List<Integer> culprits = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      culprits.add(error.getInt(Structs.Error.CULPRITS + 4 * i));
    }
    return culprits;
  }
}
