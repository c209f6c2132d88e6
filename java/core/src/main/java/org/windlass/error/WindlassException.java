// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import java.util.Objects;

/**
 * The root of everything that Windlass throws: a code, a message that says what happened, where and
 * what to do, and, where ranks are involved, the operation and the ranks at fault.
 */
public abstract sealed class WindlassException extends RuntimeException
    permits InvalidArgumentException,
        MismatchException,
        DeadlineExceededException,
        PeerLostException,
        AbortedException,
        VerificationFailedException,
        UnsupportedException,
        ResourceException,
        ClosedException,
        DeviceException,
        InternalException {
  private static final long serialVersionUID = 1L;

  /** The kind of failure. */
  private final ErrorCode code;

  /** Where it was observed; empty if in no operation. */
  private final String operation;

  private final transient List<Integer> culprits;

  WindlassException(
      ErrorCode code, String message, Throwable cause, String operation, List<Integer> culprits) {
    super(message, cause);
    this.code = code;
    this.operation = Objects.requireNonNull(operation, "operation");
    this.culprits = List.copyOf(Objects.requireNonNull(culprits, "culprits"));
  }

  /**
   * The exception of a failure that the C ABI reports.
   *
   * @param code a {@code wl_code}; one that is unknown is an {@link InternalException}
   * @param message what happened, where and what to do
   * @param cause what led to it, or null
   * @param operation the operation in which the failure was observed; empty if in none
   * @param culprits the ranks at fault
   */
  public static WindlassException of(
      int code, String message, Throwable cause, String operation, List<Integer> culprits) {
    for (ErrorCode known : ErrorCode.values()) {
      if (known.number() == code) {
        return of(known, message, cause, operation, culprits);
      }
    }
    return new InternalException(
        "the native library returned the unknown code " + code + ": " + message,
        cause,
        operation,
        culprits);
  }

  /** The same, in no operation, with no other cause. */
  public static WindlassException of(int code, String message, List<Integer> culprits) {
    return of(code, message, null, "", culprits);
  }

  private static WindlassException of(
      ErrorCode code, String message, Throwable cause, String operation, List<Integer> culprits) {
    return switch (code) {
      case INVALID_ARGUMENT ->
          new InvalidArgumentException(message, cause, operation, culprits);
      case MISMATCH -> new MismatchException(message, cause, operation, culprits);
      case TIMEOUT -> new DeadlineExceededException(message, cause, operation, culprits);
      case PEER_LOST -> new PeerLostException(message, cause, operation, culprits);
      case ABORTED -> new AbortedException(message, cause, operation, culprits);
      case VERIFICATION_FAILED ->
          new VerificationFailedException(message, cause, operation, culprits);
      case UNSUPPORTED -> new UnsupportedException(message, cause, operation, culprits);
      case RESOURCE -> new ResourceException(message, cause, operation, culprits);
      case CLOSED -> new ClosedException(message, cause, operation, culprits);
      case DEVICE -> new DeviceException(message, cause, operation, culprits);
      case INTERNAL -> new InternalException(message, cause, operation, culprits);
    };
  }

  /** The kind of failure; one subclass stands for each. */
  public final ErrorCode code() {
    return code;
  }

  /** The operation in which the failure was observed, such as {@code all-to-all}; empty if none. */
  public final String operation() {
    return operation;
  }

  /** The ranks at fault, ascending; empty where no rank is. */
  public final List<Integer> culprits() {
    return culprits == null ? List.of() : culprits;
  }
}
