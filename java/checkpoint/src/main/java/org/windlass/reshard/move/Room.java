// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.Tensor;

/** Provides scratch memory to one thread, which reuses it for each tile. */
final class Room {
  private static final long ALIGNMENT = 64;

  record Piece(Tensor memory, ByteBuffer bytes) {
    Tensor as(DType dtype, long... shape) {
      return Tensor.of(memory.address(), memory.bytes(), memory.memory(), dtype, shape);
    }
  }

  private Tensor memory = Tensor.allocate(DType.U8, 0);
  private ByteBuffer bytes = memory.asByteBuffer();
  private long used;

  /** Frees all pieces, and allocates at least about {@code expected} bytes. */
  void reset(long expected) {
    used = 0;
    if (memory.bytes() < expected) {
      memory = Tensor.allocate(DType.U8, expected);
      bytes = memory.asByteBuffer();
    }
  }

  /** Returns the number of bytes in use. {@link #free} takes it as its mark. */
  long used() {
    return used;
  }

  /** Frees the pieces that were taken after {@link #used} returned {@code mark}. */
  void free(long mark) {
    used = mark;
  }

  /**
   * Takes {@code size} bytes. They are valid until {@link #reset}, or until {@link #free} frees
   * them.
   */
  Piece take(long size) {
    long from = used;
    used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (used > memory.bytes()) {
      Tensor more = Tensor.allocate(DType.U8, size);
      return new Piece(more, more.asByteBuffer());
    }
    return new Piece(memory.narrow(0, from, size), bytes.slice((int) from, (int) size));
  }
}
