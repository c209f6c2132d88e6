// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.List;
import java.util.Objects;
import org.windlass.internal.Copies;

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
    this.culprits = Copies.list(culprits, "culprits");
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
