// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The base class of all exceptions that Windlass throws. Every exception has a code, and a message
 * with the failure, its location and the remedy. If ranks are involved, it also has the operation
 * in which the failure was observed, and the faulty ranks.
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

  /**
   * Name of the operation in which the failure was observed. Empty if the failure was outside of
   * operations.
   */
  private final String operation;

  private final transient List<Integer> faultyRanks;

  WindlassException(
      ErrorCode code,
      String message,
      @Nullable Throwable cause,
      String operation,
      List<Integer> faultyRanks) {
    super(message, cause);
    this.code = code;
    this.operation = Objects.requireNonNull(operation, "operation");
    int i = 0;
    for (Integer rank : Objects.requireNonNull(faultyRanks, "faultyRanks")) {
      Objects.requireNonNull(rank, "faultyRanks[" + i++ + "]");
    }
    this.faultyRanks = List.copyOf(faultyRanks);
  }

  /**
   * Returns the exception for a failure that the C ABI reports.
   *
   * @param code a {@code wl_code}; an unknown code gives an {@link InternalException}
   * @param message the failure, its location and the remedy
   * @param cause the failure that caused this one, or null
   * @param operation the operation in which the failure was observed; empty if there was none
   * @param faultyRanks the faulty ranks; empty if no rank is at fault
   */
  public static WindlassException of(
      int code,
      String message,
      @Nullable Throwable cause,
      String operation,
      List<Integer> faultyRanks) {
    for (ErrorCode known : ErrorCode.values()) {
      if (known.number() == code) {
        return known.exception(message, cause, operation, faultyRanks);
      }
    }
    return new InternalException(
        "the native library returned the unknown code " + code + ": " + message,
        cause,
        operation,
        faultyRanks);
  }

  /** Returns the exception for a failure without a cause that was not observed in an operation. */
  public static WindlassException of(int code, String message, List<Integer> faultyRanks) {
    return of(code, message, null, "", faultyRanks);
  }

  /** Returns the failure, its location and the remedy. */
  @Override
  public final String getMessage() {
    return String.valueOf(super.getMessage());
  }

  /** Returns the kind of failure. Each kind has one subclass. */
  public final ErrorCode code() {
    return code;
  }

  /**
   * Returns the operation in which the failure was observed, such as {@code all-to-all}. Empty if
   * the failure was outside of operations.
   */
  public final String operation() {
    return operation;
  }

  /** Returns the faulty ranks in ascending order. Empty if no rank is at fault. */
  public final List<Integer> faultyRanks() {
    return faultyRanks == null ? List.of() : faultyRanks;
  }
}
