// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Caches bytes that one thread has read of stored tensors. It keeps recently used pages for
 * scattered elements and short rows, and reads longer ranges at once. Files are read and not
 * mapped, so a file that is truncated meanwhile causes an exception.
 */
final class FilePages {
  private static final int PAGE_BITS = 12;
  static final int BYTES = 1 << PAGE_BITS;
  static final int RANGE_BYTES = 256 << 10;
  // An element that begins in one page ends in it too, and so does a word read from its place.
  private static final int MARGIN = 8;
  private static final int SLOT_BITS = 12;
  private static final ThreadLocal<FilePages> OF_THREAD = ThreadLocal.withInitial(FilePages::new);

  private final ByteBuffer[] pages = new ByteBuffer[1 << SLOT_BITS];
  private final StoredTensor[] owners = new StoredTensor[1 << SLOT_BITS];
  private final long[] numbers = new long[1 << SLOT_BITS];
  private final ByteBuffer[] ranges = {range(), range()};

  private static ByteBuffer range() {
    return ByteBuffer.allocateDirect(RANGE_BYTES + MARGIN).order(ByteOrder.LITTLE_ENDIAN);
  }

  static FilePages ofThread() {
    return OF_THREAD.get();
  }

  /** Returns a little-endian word of eight bytes, which may end after the tensor. */
  long word(StoredTensor tensor, long at) {
    return page(tensor, at >>> PAGE_BITS).getLong((int) at & BYTES - 1);
  }

  /** Returns page {@code number} (from 0) of a tensor, valid until the next call. */
  private ByteBuffer page(StoredTensor tensor, long number) {
    long mixed = (number + tensor.hashCode() * 31L) * 0x9E3779B97F4A7C15L;
    int slot = (int) (mixed >>> (Long.SIZE - SLOT_BITS));
    if (owners[slot] != tensor || numbers[slot] != number) {
      if (pages[slot] == null) {
        pages[slot] = ByteBuffer.allocate(BYTES + MARGIN).order(ByteOrder.LITTLE_ENDIAN);
      }
      owners[slot] = null;
      tensor.read(number * BYTES, pages[slot].clear());
      pages[slot].clear();
      owners[slot] = tensor;
      numbers[slot] = number;
    }
    return pages[slot];
  }

  /**
   * Returns {@code length} bytes of a tensor from byte {@code from} on, as a little-endian buffer.
   * Words may be read up to eight bytes behind its limit.
   *
   * @param which the buffer to use, 0 or 1; its content is valid until the thread's next call for
   *     the same buffer
   * @param length number of bytes, at most {@link #RANGE_BYTES}
   */
  ByteBuffer range(int which, StoredTensor tensor, long from, int length) {
    ByteBuffer range = ranges[which].clear().limit(length);
    if (length > BYTES) {
      tensor.read(from, range);
    }
    while (range.hasRemaining()) {
      long at = from + range.position();
      int count = (int) Math.min(range.remaining(), BYTES - at % BYTES);
      range.put(page(tensor, at >>> PAGE_BITS).slice((int) (at % BYTES), count));
    }
    return range.flip();
  }
}
