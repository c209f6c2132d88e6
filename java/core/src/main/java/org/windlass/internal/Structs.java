// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Buffers for the C ABI's structs. {@link StructLayouts}, which the build generates from
 * windlass.h, has their sizes and the offsets of their fields.
 */
public final class Structs extends StructLayouts {
  private Structs() {}

  /** A zeroed direct buffer in native order, for structs and arrays of the C ABI. */
  public static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** The text from {@code at} on, of at most {@code room} bytes, that NUL ends. */
  public static String text(ByteBuffer struct, int at, int room) {
    byte[] bytes = new byte[room];
    int length = 0;
    while (length < room && struct.get(at + length) != 0) {
      bytes[length] = struct.get(at + length);
      length++;
    }
    return new String(bytes, 0, length, StandardCharsets.UTF_8);
  }

  /** A {@code wl_experts_t} of rows side by side, with room for {@code rows} on a rank. */
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
