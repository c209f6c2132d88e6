// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.List;
import org.windlass.internal.Native;

/**
 * Collects sends and receives that run together: {@link PointToPoint#group}. Its methods only
 * record the calls.
 */
public final class MessageGroup {
  /** A send or a receive. {@code operation} is {@code WL_OP_SEND} or {@code WL_OP_RECEIVE}. */
  record Part(int operation, Tensor tensor, int peer, int tag) {
    static Part send(Tensor tensor, int peer, int tag) {
      Arguments.message("send", true, tensor);
      return new Part(Native.WL_OP_SEND, tensor, peer, tag);
    }

    static Part receive(Tensor tensor, int peer, int tag) {
      Arguments.message("receive", false, tensor);
      return new Part(Native.WL_OP_RECEIVE, tensor, peer, tag);
    }

    boolean sends() {
      return operation == Native.WL_OP_SEND;
    }
  }

  final List<Part> parts = new ArrayList<>();

  MessageGroup() {}

  /** Adds {@link PointToPoint#send(Tensor, int, int)}. */
  public void send(Tensor tensor, int peer, int tag) {
    parts.add(Part.send(tensor, peer, tag));
  }

  /** Adds {@link PointToPoint#receive(Tensor, int, int)}. */
  public void receive(Tensor tensor, int peer, int tag) {
    parts.add(Part.receive(tensor, peer, tag));
  }
}
