// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

/**
 * The kinds of failure that a {@link WindlassException} is. The numbers are those of the C ABI's
 * {@code wl_code}.
 */
public enum ErrorCode {
  /** A call that cannot be carried out as written; nothing was sent. */
  INVALID_ARGUMENT(1, 2, "InvalidArgument"),
  /** Ranks disagree; the message names both sides. */
  MISMATCH(2, 2, "Mismatch"),
  /** A deadline passed; the message names who is behind. */
  DEADLINE_EXCEEDED(3, 4, "DeadlineExceeded"),
  /** A peer is gone. */
  PEER_LOST(4, 5, "PeerLost"),
  /** Someone ended the operation; the message carries the reason. */
  ABORTED(5, 5, "Aborted"),
  /** What arrived is not what was sent. */
  VERIFICATION_FAILED(6, 6, "VerificationFailed"),
  /** A target, dtype or feature that is not available here. */
  UNSUPPORTED(7, 3, "Unsupported"),
  /** Memory, disk, /dev/shm or permission. */
  RESOURCE(8, 7, "Resource"),
  /** The object was closed. */
  CLOSED(9, 1, "Closed"),
  /** A fault of the device. */
  DEVICE(10, 1, "Device"),
  /** A fault of Windlass. */
  INTERNAL(11, 1, "Internal");

  private final int number;
  private final int exitStatus;
  private final String label;

  ErrorCode(int number, int exitStatus, String label) {
    this.number = number;
    this.exitStatus = exitStatus;
    this.label = label;
  }

  /** The code's number in the C ABI. */
  public int number() {
    return number;
  }

  /** The exit status that the {@code windlass} command ends with. */
  public int exitStatus() {
    return exitStatus;
  }

  /** The code's name in messages, such as {@code InvalidArgument}. */
  @Override
  public String toString() {
    return label;
  }
}
