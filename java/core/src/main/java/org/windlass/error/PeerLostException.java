// SPDX-License-Identifier: Apache-2.0
package org.windlass.error;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Thrown by an operation when the process or host of a peer is gone. The communicator is dead. */
public final class PeerLostException extends WindlassException {
  private static final long serialVersionUID = 1L;

  public PeerLostException(String message) {
    this(message, null, "", List.of());
  }

  public PeerLostException(String message, @Nullable Throwable cause) {
    this(message, cause, "", List.of());
  }

  public PeerLostException(String message, List<Integer> faultyRanks) {
    this(message, null, "", faultyRanks);
  }

  public PeerLostException(
      String message, @Nullable Throwable cause, String operation, List<Integer> faultyRanks) {
    super(ErrorCode.PEER_LOST, message, cause, operation, faultyRanks);
  }
}
