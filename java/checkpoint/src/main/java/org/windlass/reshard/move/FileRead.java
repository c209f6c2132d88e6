// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.windlass.Tensor;

/**
 * Reads a box of a stored tensor into a block of memory. It reads the file and does not map it, so
 * a file that another process truncates meanwhile causes an exception.
 *
 * @param source the stored tensor
 * @param elementBytes bytes of an element
 * @param stored the stored tensor's extents
 * @param from the first indices of the box in the stored tensor
 * @param length the box's extents
 * @param block the block's extents
 * @param at the first indices of the box in the block
 * @param memory the block, as bytes
 */
record FileRead(
    Stored source,
    long elementBytes,
    long[] stored,
    long[] from,
    long[] length,
    long[] block,
    long[] at,
    Tensor memory) {
  // Limit for one read of a thread.
  private static final long MOST_BYTES = 512 << 10;
  // A gap up to this size between two rows is read with them. That costs less than one more call.
  private static final long GAP_BYTES = 4 << 10;
  // Rows longer than this are read without an intermediate copy.
  private static final long ROW_BYTES = 32 << 10;
  static final int SCRATCH_BYTES = 256 << 10;

  private long bytes() {
    return Arrays.stream(length).reduce(elementBytes, (a, b) -> a * b);
  }

  /** Splits the read into parts that threads share, and adds them to {@code reads}. */
  void split(List<FileRead> reads) {
    int cut = 0;
    while (cut < length.length && length[cut] == 1) {
      cut++;
    }
    long bytes = bytes();
    if (bytes <= MOST_BYTES || cut == length.length) {
      reads.add(this);
      return;
    }
    long parts = Math.min(length[cut], (bytes + MOST_BYTES - 1) / MOST_BYTES);
    long step = (length[cut] + parts - 1) / parts;
    for (long begin = 0; begin < length[cut]; begin += step) {
      long[] shorter = length.clone();
      shorter[cut] = Math.min(step, length[cut] - begin);
      new FileRead(
              source,
              elementBytes,
              stored,
              moved(from, cut, begin),
              shorter,
              block,
              moved(at, cut, begin),
              memory)
          .split(reads);
    }
  }

  private static long[] moved(long[] start, int dim, long by) {
    long[] moved = start.clone();
    moved[dim] += by;
    return moved;
  }

  /** Reads the box. {@code scratch} has {@link #SCRATCH_BYTES} bytes. */
  void run(ByteBuffer scratch) {
    // Dimensions from `inner` on are contiguous in the file and in memory.
    int inner = length.length;
    long row = elementBytes;
    for (boolean full = true; inner > 0 && full; ) {
      inner--;
      row *= length[inner];
      full = length[inner] == stored[inner] && length[inner] == block[inner];
    }
    int rows = inner - 1;
    long count = inner == 0 ? 1 : length[rows];
    long apart = inner == 0 ? row : strideOf(stored, rows);
    long blockApart = inner == 0 ? row : strideOf(block, rows);
    boolean gathers = count > 1 && row < ROW_BYTES && apart - row <= GAP_BYTES;
    long[] index = new long[Math.max(rows, 0)];
    do {
      long first = offset(from, stored, index);
      long target = offset(at, block, index);
      if (gathers) {
        gather(scratch, first, target, count, row, apart, blockApart);
      } else {
        for (long i = 0; i < count; i++) {
          read(first + i * apart, target + i * blockApart, row);
        }
      }
    } while (next(index));
  }

  private void read(long from, long target, long bytes) {
    for (long done = 0; done < bytes; done += MOST_BYTES) {
      int length = (int) Math.min(MOST_BYTES, bytes - done);
      source.read(from + done, memory.asByteBuffer(target + done, length));
    }
  }

  /** Reads rows together with the gaps between them, and copies each row to its position. */
  private void gather(
      ByteBuffer scratch,
      long from,
      long target,
      long count,
      long row,
      long apart,
      long blockApart) {
    long atOnce = SCRATCH_BYTES / apart;
    for (long done = 0; done < count; done += atOnce) {
      int rows = (int) Math.min(atOnce, count - done);
      scratch.clear().limit((int) ((rows - 1) * apart + row));
      source.read(from + done * apart, scratch);
      long span = (rows - 1) * blockApart + row;
      ByteBuffer places = memory.asByteBuffer(target + done * blockApart, (int) span);
      for (int i = 0; i < rows; i++) {
        places.put((int) (i * blockApart), scratch, (int) (i * apart), (int) row);
      }
    }
  }

  private long strideOf(long[] shape, int dim) {
    long stride = elementBytes;
    for (int d = dim + 1; d < shape.length; d++) {
      stride *= shape[d];
    }
    return stride;
  }

  /** Returns the byte offset of {@code start}, moved by {@code index} in the leading dimensions. */
  private long offset(long[] start, long[] shape, long[] index) {
    long offset = 0;
    for (int d = 0; d < shape.length; d++) {
      offset = offset * shape[d] + start[d] + (d < index.length ? index[d] : 0);
    }
    return offset * elementBytes;
  }

  private boolean next(long[] index) {
    for (int d = index.length - 1; d >= 0; d--) {
      if (++index[d] < length[d]) {
        return true;
      }
      index[d] = 0;
    }
    return false;
  }
}
