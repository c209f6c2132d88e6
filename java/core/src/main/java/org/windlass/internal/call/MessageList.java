// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.ByteBuffer;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/** An array of {@code wl_message_t}: sends and receives of one call, and their results. */
public final class MessageList {
  private ByteBuffer structs;
  private long address;
  private int count;

  public MessageList(int room) {
    structs = Structs.allocate(room * Structs.Message.SIZE);
    address = NativeMemory.address(structs);
  }

  /** Removes all messages, and makes room for {@code room} messages. */
  public MessageList clear(int room) {
    if (room * Structs.Message.SIZE > structs.capacity()) {
      structs = Structs.allocate(room * Structs.Message.SIZE);
      address = NativeMemory.address(structs);
    }
    count = 0;
    return this;
  }

  /**
   * Adds a message.
   *
   * @param operation {@code WL_OP_SEND} or {@code WL_OP_RECEIVE}
   */
  public MessageList add(
      int operation, int peer, int tag, int dtype, long data, long elements) {
    int at = count++ * Structs.Message.SIZE;
    structs.putInt(at, Structs.Message.SIZE);
    structs.putInt(at + Structs.Message.OPERATION, operation);
    structs.putInt(at + Structs.Message.PEER, peer);
    structs.putInt(at + Structs.Message.TAG, tag);
    structs.putInt(at + Structs.Message.DTYPE, dtype);
    structs.putLong(at + Structs.Message.DATA, data);
    structs.putLong(at + Structs.Message.ELEMENTS, elements);
    return this;
  }

  public int count() {
    return count;
  }

  public long address() {
    return address;
  }

  /** Returns the rank that sent the message of receive {@code index}. */
  public int source(int index) {
    return structs.getInt(index * Structs.Message.SIZE + Structs.Message.SOURCE);
  }

  /** Returns the tag of the message of receive {@code index}. */
  public int tag(int index) {
    return structs.getInt(index * Structs.Message.SIZE + Structs.Message.FOUND_TAG);
  }

  /** Returns the number of elements in the message of receive {@code index}. */
  public long received(int index) {
    return structs.getLong(index * Structs.Message.SIZE + Structs.Message.RECEIVED);
  }
}
