// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.ByteBuffer;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/**
 * The {@code wl_call_t} in which a rank describes each collective. The thread whose call is in
 * progress calls {@link #of} first, then sets each field that the operation uses.
 */
public final class CallStruct {
  private final ByteBuffer struct = Structs.allocate(Structs.Call.SIZE);
  private final long address = NativeMemory.address(struct);

  CallStruct() {
    struct.putInt(Structs.Call.STRUCT_SIZE, Structs.Call.SIZE);
  }

  public long address() {
    return address;
  }

  /** Starts the description of a collective that is not enqueued on a stream. */
  public CallStruct of(int operation, int dtype, long deadlineNs) {
    struct.putInt(Structs.Call.OPERATION, operation);
    struct.putInt(Structs.Call.DTYPE, dtype);
    struct.putLong(Structs.Call.DEADLINE_NS, deadlineNs);
    struct.putLong(Structs.Call.TICKET, 0);
    return this;
  }

  public CallStruct in(long buffer, long elements) {
    struct.putLong(Structs.Call.IN, buffer);
    struct.putLong(Structs.Call.IN_ELEMENTS, elements);
    return this;
  }

  public CallStruct out(long buffer, long elements) {
    struct.putLong(Structs.Call.OUT, buffer);
    struct.putLong(Structs.Call.OUT_ELEMENTS, elements);
    return this;
  }

  public CallStruct op(int op) {
    struct.putInt(Structs.Call.OP, op);
    return this;
  }

  /** Sets the fields of a collective whose parts are equal, except its buffers. */
  public CallStruct equalParts(int op, int root, long rows, int algorithm) {
    struct.putInt(Structs.Call.OP, op);
    struct.putInt(Structs.Call.ROOT, root);
    struct.putLong(Structs.Call.ROWS, rows);
    struct.putInt(Structs.Call.ALGORITHM, algorithm);
    return this;
  }

  /** Sets the addresses of the lists of input counts and offsets. 0 means none. */
  public CallStruct inParts(long counts, long offsets) {
    struct.putLong(Structs.Call.IN_COUNTS, counts);
    struct.putLong(Structs.Call.IN_OFFSETS, offsets);
    return this;
  }

  /** Sets the addresses of the lists of output counts and offsets. 0 means none. */
  public CallStruct outParts(long counts, long offsets) {
    struct.putLong(Structs.Call.OUT_COUNTS, counts);
    struct.putLong(Structs.Call.OUT_OFFSETS, offsets);
    return this;
  }

  /** Sets the address of the list of counts received from each rank. 0 means none. */
  public CallStruct received(long counts) {
    struct.putLong(Structs.Call.RECEIVED_COUNTS, counts);
    return this;
  }

  /**
   * Makes the call enqueue its operation on {@code stream}.
   *
   * @param ticket address at which the native side writes the ticket of the operation
   */
  public CallStruct on(long stream, long ticket) {
    struct.putLong(Structs.Call.STREAM, stream);
    struct.putLong(Structs.Call.TICKET, ticket);
    return this;
  }
}
