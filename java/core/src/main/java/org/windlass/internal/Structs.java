// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Allocates buffers for the C ABI's structs. {@link StructLayouts}, generated from windlass.h, has
 * sizes and field offsets.
 */
public final class Structs extends StructLayouts {
  private Structs() {}

  /** Returns a zeroed direct buffer in native order, for structs and arrays of the C ABI. */
  public static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** Returns the NUL-terminated text at offset {@code at}, of at most {@code room} bytes. */
  public static String text(ByteBuffer struct, int at, int room) {
    byte[] bytes = new byte[room];
    int length = 0;
    while (length < room && struct.get(at + length) != 0) {
      bytes[length] = struct.get(at + length);
      length++;
    }
    return new String(bytes, 0, length, StandardCharsets.UTF_8);
  }

  /**
   * Returns a {@code wl_experts_t} for tokens that are not quantised, with alignment 1. A rank has
   * room for {@code rows} token rows.
   */
  public static ByteBuffer experts(
      int dtype, int ranks, int experts, int topK, long hidden, long tokens, long rows) {
    ByteBuffer struct = allocate(Experts.SIZE);
    struct.putInt(0, Experts.SIZE);
    struct.putInt(Experts.DTYPE, dtype);
    struct.putInt(Experts.RANKS, ranks);
    struct.putInt(Experts.EXPERTS, experts);
    struct.putInt(Experts.TOP_K, topK);
    struct.putInt(Experts.ALIGNMENT, 1);
    struct.putLong(Experts.HIDDEN, hidden);
    struct.putLong(Experts.TOKENS, tokens);
    struct.putLong(Experts.ROWS, rows);
    return struct;
  }
}
