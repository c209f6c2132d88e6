// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Copies a box (a range of indices in each dimension) between a tensor in a file and a block of
 * memory. It reads the file and does not map it. So if another process truncates the file
 * meanwhile, this causes an exception and not a crash.
 */
final class FileBox {
  /** Size in bytes of the scratch memory for {@link #read}. */
  static final int SCRATCH_BYTES = 256 << 10;

  // Limit for one read of a thread.
  private static final int READ_BYTES = 512 << 10;
  // The page cache allocates memory for a write in pieces of the size of the call. Recently freed
  // pieces of this size are available, while larger ones were up to four times slower.
  private static final int WRITE_BYTES = 256 << 10;
  // If the gap between two rows is at most this size, it is read together with them. This costs
  // less than one more call.
  private static final long GAP_BYTES = 4 << 10;
  // Rows of at least this size are read or written with a call for each.
  private static final long ROW_BYTES = 32 << 10;

  /** Moves bytes that are contiguous in the file and in the block. Takes both byte offsets. */
  private interface Rows {
    void move(long inFile, long inBlock);
  }

  private final long elementBytes;
  private final long[] file;
  private final long[] start;
  private final long[] shape;
  private final long[] block;
  private final long[] place;

  /** Index of the dimension along which contiguous rows follow one another; -1 for one row. */
  private final int rows;

  private final long row;

  /**
   * Creates a box. The tensor in the file and the block are both row-major.
   *
   * @param file the extents of the tensor in the file
   * @param start the box's first index in the file, for each dimension
   * @param block the extents of the block
   * @param place the box's first index in the block, for each dimension
   */
  FileBox(
      long elementBytes, long[] file, long[] start, long[] shape, long[] block, long[] place) {
    this.elementBytes = elementBytes;
    this.file = file;
    this.start = start;
    this.shape = shape;
    this.block = block;
    this.place = place;
    // Dimensions from `inner` on are contiguous in the file and in the block.
    int inner = shape.length;
    long bytes = elementBytes;
    for (boolean full = true; inner > 0 && full; ) {
      inner--;
      bytes *= shape[inner];
      full = shape[inner] == file[inner] && shape[inner] == block[inner];
    }
    int outer = inner - 1;
    while (outer >= 0 && shape[outer] == 1) {
      outer--;
    }
    this.rows = outer;
    this.row = bytes;
  }

  /** Returns whether contiguous rows are long enough to read or write each with its own call. */
  boolean hasLongRows() {
    return rows < 0 || row >= ROW_BYTES;
  }

  long bytes() {
    return TargetTensor.elements(shape) * elementBytes;
  }

  private long count() {
    return rows < 0 ? 1 : shape[rows];
  }

  /** Reads the box into {@code memory}, and counts the system calls for {@code team}. */
  void read(SafetensorsFile source, String name, ByteBuffer memory, ByteBuffer scratch, Team team) {
    long apart = strideOf(file, rows);
    long blockApart = strideOf(block, rows);
    long count = count();
    if (count > 1 && row < ROW_BYTES && apart - row <= GAP_BYTES) {
      long atOnce = Math.min(count, SCRATCH_BYTES / apart);
      memory.clear();
      forEach(
          count,
          (inFile, inBlock) -> {
            for (long done = 0; done < count; done += atOnce) {
              int rows = (int) Math.min(atOnce, count - done);
              scratch.clear().limit((int) ((rows - 1) * apart + row));
              source.read(name, inFile + done * apart, scratch);
              team.add(Team.CALLS, 1);
              for (int i = 0; i < rows; i++) {
                long to = inBlock + (done + i) * blockApart;
                memory.put((int) to, scratch, (int) (i * apart), (int) row);
              }
            }
          });
      return;
    }
    forEach(
        1,
        (inFile, inBlock) -> {
          for (long done = 0; done < row; done += READ_BYTES) {
            source.read(name, inFile + done, part(memory, inBlock + done, row - done, READ_BYTES));
            team.add(Team.CALLS, 1);
          }
        });
  }

  /**
   * Writes the box, and counts its bytes for {@code team}.
   *
   * @param watch looks for overflowed values, unless it is null
   */
  void write(Output.Place target, ByteBuffer memory, Overflows.@Nullable Watch watch, Team team) {
    forEach(
        1,
        (inFile, inBlock) -> {
          for (long done = 0; done < row; done += WRITE_BYTES) {
            ByteBuffer bytes = part(memory, inBlock + done, row - done, WRITE_BYTES);
            int length = bytes.remaining();
            if (watch != null) {
              watch.look(bytes);
            }
            target.file().write(target.begin() + inFile + done, bytes);
            team.add(Team.MOVED, length);
          }
        });
  }

  private static ByteBuffer part(ByteBuffer memory, long from, long bytes, int most) {
    return memory.clear().limit((int) (from + Math.min(bytes, most))).position((int) from);
  }

  /**
   * Calls {@code action} for row 0, {@code group}, 2 * {@code group} and so on along the dimension
   * of the rows.
   */
  private void forEach(long group, Rows action) {
    long[] index = new long[rows + 1];
    do {
      action.move(offset(start, file, index), offset(place, block, index));
    } while (next(index, group));
  }

  private boolean next(long[] index, long group) {
    for (int d = rows; d >= 0; d--) {
      index[d] += d == rows ? group : 1;
      if (index[d] < shape[d]) {
        return true;
      }
      index[d] = 0;
    }
    return false;
  }

  private long strideOf(long[] extents, int dim) {
    long stride = elementBytes;
    for (int d = dim + 1; d < extents.length; d++) {
      stride *= extents[d];
    }
    return stride;
  }

  /** Returns the byte offset of element {@code first + index}. Missing indices are 0. */
  private long offset(long[] first, long[] extents, long[] index) {
    long offset = 0;
    for (int d = 0; d < extents.length; d++) {
      offset = offset * extents[d] + first[d] + (d < index.length ? index[d] : 0);
    }
    return offset * elementBytes;
  }
}
