// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/**
 * Writes bytes that identify their origin. Each byte depends on the rank that wrote it, its
 * position in that rank's input, and the iteration. The pattern suits operations that move bits
 * without arithmetic.
 */
public final class Pattern {
  private static final long POSITION = 0x9e3779b97f4a7c15L;
  private static final long RANK = 0xc2b2ae3d27d4eb4fL;
  private static final long ITERATION = 0x165667b19e3779f9L;
  private static final int CHUNK = 512;

  private final int rank;
  private final ByteBuffer bytes;
  private final LongBuffer words;
  private final long[] chunk = new long[CHUNK];

  public Pattern(int rank, ByteBuffer memory) {
    this.rank = rank;
    this.bytes = memory.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    this.words = bytes.asLongBuffer();
  }

  private static long word(int rank, long index, long iteration) {
    return (index + 1) * POSITION + (rank + 1) * RANK + (iteration + 1) * ITERATION;
  }

  static byte byteAt(int rank, long position, long iteration) {
    return (byte) (word(rank, position >> 3, iteration) >>> ((position & 7) << 3));
  }

  /** Writes the whole input of {@code iteration}. Allocates nothing. */
  public void rewrite(long iteration) {
    int count = words.limit();
    for (int start = 0; start < count; start += CHUNK) {
      int length = Math.min(CHUNK, count - start);
      long first = word(rank, start, iteration);
      for (int i = 0; i < length; i++) {
        chunk[i] = first + i * POSITION;
      }
      words.put(start, chunk, 0, length);
    }
    for (int position = count << 3; position < bytes.limit(); position++) {
      bytes.put(position, byteAt(rank, position, iteration));
    }
  }

  /**
   * Compares bytes with those of a rank's input.
   *
   * @param memory little-endian buffer; the {@code length} bytes at {@code from} are compared
   * @param rank rank whose input is expected
   * @param position offset in that input of the first expected byte
   * @return offset in {@code memory} of the first wrong byte, or -1 if all are right
   */
  public static int mismatch(
      ByteBuffer memory, int from, int length, int rank, long position, long iteration) {
    int i = 0;
    while (i < length) {
      long at = position + i;
      if ((at & 7) == 0
          && i + 8 <= length
          && memory.getLong(from + i) == word(rank, at >> 3, iteration)) {
        i += 8;
      } else if (memory.get(from + i) == byteAt(rank, at, iteration)) {
        i++;
      } else {
        return from + i;
      }
    }
    return -1;
  }
}
