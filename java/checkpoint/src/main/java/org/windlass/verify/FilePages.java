// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Caches the bytes that one thread has read of stored tensors. It keeps recently used pages for
 * scattered elements, and long runs of bytes for a single pass. Files are read and not mapped, so a
 * file that is truncated meanwhile causes an exception.
 */
final class FilePages {
  static final int BYTES = 4 << 10;
  static final int RUN_BYTES = 256 << 10;
  // An element that begins in one page ends in it too.
  private static final int MARGIN = 8;
  private static final int SLOT_BITS = 12;
  private static final ThreadLocal<FilePages> OF_THREAD = ThreadLocal.withInitial(FilePages::new);

  private final ByteBuffer[] pages = new ByteBuffer[1 << SLOT_BITS];
  private final StoredTensor[] owners = new StoredTensor[1 << SLOT_BITS];
  private final long[] numbers = new long[1 << SLOT_BITS];
  private final ByteBuffer[] runs = new ByteBuffer[2];

  static FilePages ofThread() {
    return OF_THREAD.get();
  }

  /**
   * Returns page {@code number} of a tensor, little-endian. The page is valid until the thread asks
   * for the next one.
   */
  ByteBuffer get(StoredTensor tensor, long number) {
    long mixed = (number + System.identityHashCode(tensor) * 31L) * 0x9E3779B97F4A7C15L;
    int slot = (int) (mixed >>> (64 - SLOT_BITS));
    if (owners[slot] != tensor || numbers[slot] != number) {
      if (pages[slot] == null) {
        pages[slot] = ByteBuffer.allocate(BYTES + MARGIN).order(ByteOrder.LITTLE_ENDIAN);
      }
      owners[slot] = null;
      tensor.read(number * BYTES, pages[slot].clear());
      owners[slot] = tensor;
      numbers[slot] = number;
    }
    return pages[slot];
  }

  /**
   * Returns {@code length} bytes of a tensor from {@code from} on, little-endian. The length is at
   * most {@link #RUN_BYTES}. The bytes are valid until the thread asks for the same {@code which}
   * (0 or 1) again.
   */
  ByteBuffer run(int which, StoredTensor tensor, long from, int length) {
    if (runs[which] == null) {
      runs[which] = ByteBuffer.allocateDirect(RUN_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    }
    tensor.read(from, runs[which].clear().limit(length));
    return runs[which].flip();
  }
}
