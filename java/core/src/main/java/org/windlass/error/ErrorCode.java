// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

/**
 * The kinds of failure that a {@link WindlassException} reports. The numbers are those of the C
 * ABI's {@code wl_code}.
 */
public enum ErrorCode {
  /** The call is not valid as written. No data was sent. */
  INVALID_ARGUMENT(1, 2, "InvalidArgument"),
  /** Ranks disagree about an operation. The message names both sides. */
  MISMATCH(2, 2, "Mismatch"),
  /** A deadline passed. The message names the ranks that are behind. */
  DEADLINE_EXCEEDED(3, 4, "DeadlineExceeded"),
  /** A peer's process or host has died or can't be reached. */
  PEER_LOST(4, 5, "PeerLost"),
  /** A rank or a call such as abort ended the operation. The message has the reason. */
  ABORTED(5, 5, "Aborted"),
  /** The data that arrived differs from the data that was sent. */
  VERIFICATION_FAILED(6, 6, "VerificationFailed"),
  /** A target, dtype or feature is not available in this build or on this machine. */
  UNSUPPORTED(7, 3, "Unsupported"),
  /** Too little memory or disk space, or /dev/shm or a permission is missing. */
  RESOURCE(8, 7, "Resource"),
  /** The object was closed. */
  CLOSED(9, 1, "Closed"),
  /** A device failed. */
  DEVICE(10, 1, "Device"),
  /** Windlass itself has a defect. */
  INTERNAL(11, 1, "Internal");

  private final int number;
  private final int exitStatus;
  private final String label;

  ErrorCode(int number, int exitStatus, String label) {
    this.number = number;
    this.exitStatus = exitStatus;
    this.label = label;
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
