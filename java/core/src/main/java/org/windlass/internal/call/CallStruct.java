// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.ByteBuffer;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/**
 * The {@code wl_call_t} in which a rank describes each collective. The thread whose call is in
 * progress first calls {@link #of}, then sets each field that the operation uses.
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

  /** Begins the description of a collective that does not run on a stream. */
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

  /** Sets all fields, except the buffers, of a collective whose parts have equal lengths. */
  public CallStruct equalParts(int op, int root, long rows, int algorithm) {
    struct.putInt(Structs.Call.OP, op);
    struct.putInt(Structs.Call.ROOT, root);
    struct.putLong(Structs.Call.ROWS, rows);
    struct.putInt(Structs.Call.ALGORITHM, algorithm);
    return this;
  }

  /** Sets this rank's factor, which only premultiplied sums use. */
  public CallStruct factor(double factor) {
    struct.putDouble(Structs.Call.FACTOR, factor);
    return this;
  }

  /**
   * Sets the addresses of two lists: the count and the offset of each input part. 0 means no list.
   */
  public CallStruct inParts(long counts, long offsets) {
    struct.putLong(Structs.Call.IN_COUNTS, counts);
    struct.putLong(Structs.Call.IN_OFFSETS, offsets);
    return this;
  }

  /**
   * Sets the addresses of two lists: the count and the offset of each output part. 0 means no list.
   */
  public CallStruct outParts(long counts, long offsets) {
    struct.putLong(Structs.Call.OUT_COUNTS, counts);
    struct.putLong(Structs.Call.OUT_OFFSETS, offsets);
    return this;
  }

  /**
   * Sets the address of a list to which the number of elements that each rank sent is written. 0
   * means no list.
   */
  public CallStruct received(long counts) {
    struct.putLong(Structs.Call.RECEIVED_COUNTS, counts);
    return this;
  }

  /**
   * Makes the call enqueue its operation on {@code stream} instead of running it.
   *
   * @param ticket address at which the native side writes the operation's number
   */
  public CallStruct on(long stream, long ticket) {
    struct.putLong(Structs.Call.STREAM, stream);
    struct.putLong(Structs.Call.TICKET, ticket);
    return this;
  }
}
