// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The kinds of failure that a {@link WindlassException} reports. The numbers are those of the C
 * ABI's {@code wl_code}.
 */
public enum ErrorCode {
  /** The call is not valid as written. No data was sent. */
  INVALID_ARGUMENT(1, 2, "InvalidArgument", InvalidArgumentException::new),
  /** Ranks disagree about an operation. The message shows what each of two ranks has passed. */
  MISMATCH(2, 2, "Mismatch", MismatchException::new),
  /** A deadline passed. The message names the ranks that are behind. */
  DEADLINE_EXCEEDED(3, 4, "DeadlineExceeded", DeadlineExceededException::new),
  /** A peer's process or host has died or can't be reached. */
  PEER_LOST(4, 5, "PeerLost", PeerLostException::new),
  /**
   * The failure of a rank or a call such as abort has ended the operation. The message has the
   * reason.
   */
  ABORTED(5, 5, "Aborted", AbortedException::new),
  /** The data that arrived differs from the data that was sent. */
  VERIFICATION_FAILED(6, 6, "VerificationFailed", VerificationFailedException::new),
  /** A target, dtype or feature is not available in this build or on this machine. */
  UNSUPPORTED(7, 3, "Unsupported", UnsupportedException::new),
  /** Too little memory or disk space, or /dev/shm or a permission is missing. */
  RESOURCE(8, 7, "Resource", ResourceException::new),
  /** The object was closed. */
  CLOSED(9, 1, "Closed", ClosedException::new),
  /** A device failed. */
  DEVICE(10, 1, "Device", DeviceException::new),
  /** Windlass itself has a defect. */
  INTERNAL(11, 1, "Internal", InternalException::new);

  private final int number;
  private final int exitStatus;
  private final String label;
  private final Constructor exception;

  ErrorCode(int number, int exitStatus, String label, Constructor exception) {
    this.number = number;
    this.exitStatus = exitStatus;
    this.label = label;
    this.exception = exception;
  }

  private interface Constructor {
    WindlassException of(
        String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks);
  }

  WindlassException exception(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    return exception.of(message, cause, operation, faultyRanks);
  }

  /** Returns the code's number in the C ABI. */
  public int number() {
    return number;
  }

  /** Returns the exit status with which the {@code windlass} command ends. */
  public int exitStatus() {
    return exitStatus;
  }

  /** Returns the code's name in messages, such as {@code InvalidArgument}. */
  @Override
  public String toString() {
    return label;
  }
}
