// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Arrays;
import java.util.function.Function;

/**
 * Describes how one layout cuts one tensor dimension. Each mesh dimension that shards the tensor
 * dimension is a level; the outermost level comes first. A cell is what one coordinate on every
 * level holds. Cells are numbered in row-major order of these coordinates. Every element is in one
 * cell, and a cell's elements ascend in local order. Every count below is computed in a time that
 * is proportional to the number of levels.
 *
 * <p>A level cuts a run of elements into {@code split} pieces. It divides each piece among {@code
 * parts} coordinates, in whole units. {@code Shard} has split 1, {@code StridedShard} unit 1. The
 * next level cuts the elements of each coordinate in turn.
 *
 * <p>Cuts follow the padded extent. Counts and lists include only the real extent. The real
 * elements of a cell are the first ones of its local order, and padding follows them.
 */
public final class Cut {
  /** Largest number of intervals of one cell. It bounds memory. */
  private static final int MAX_PIECES = 1 << 24;

  private final long padded;
  private final long extent;
  private final int[] meshDims;
  private final int[] parts;
  private final int[] splits;
  private final long[] units;

  /** For each level, the number of cells that have one coordinate on it and on all outer levels. */
  private final int[] strides;

  private final int cells;
  private final Function<String, ? extends RuntimeException> refusal;

  /**
   * Creates the cut of one dimension. The arrays have one entry for each level.
   *
   * @param extent number of real elements; they are the first of {@code padded}
   * @param meshDims mesh dimension of each level
   * @param parts number of coordinates of each level
   * @param splits number of pieces of each level; each coordinate has a part of every piece
   * @param units number of elements that stay together, for each level
   * @param refusal makes the exception for a cell with too many intervals, from its message
   */
  public Cut(
      long extent,
      long padded,
      int[] meshDims,
      int[] parts,
      int[] splits,
      long[] units,
      Function<String, ? extends RuntimeException> refusal) {
    this.refusal = refusal;
    this.padded = padded;
    this.extent = extent;
    this.meshDims = meshDims;
    this.parts = parts;
    this.splits = splits;
    this.units = units;
    this.strides = new int[parts.length];
    int stride = 1;
    for (int l = parts.length - 1; l >= 0; l--) {
      strides[l] = stride;
      stride *= parts[l];
    }
    this.cells = stride;
  }

  public int levels() {
    return parts.length;
  }

  public int meshDim(int level) {
    return meshDims[level];
  }

  public int cells() {
    return cells;
  }

  /** Returns the cell of a rank with these coordinates, one for each mesh dimension. */
  public int cell(int[] meshCoordinates) {
    int cell = 0;
    for (int l = 0; l < parts.length; l++) {
      cell += meshCoordinates[meshDims[l]] * strides[l];
    }
    return cell;
  }

  /** Returns the coordinate of {@code cell} on a level. */
  public int coordinate(int cell, int level) {
    return cell / strides[level] % parts[level];
  }

  /** Returns the number of elements of {@code cell}. */
  public long length(int cell) {
    return countBefore(extent, cell);
  }

  /** Returns how many elements of {@code cell} have a global index below {@code index}. */
  public long countBefore(long index, int cell) {
    long length = padded;
    long before = index;
    for (int l = 0; l < parts.length && length > 0; l++) {
      int x = coordinate(cell, l);
      before = childBefore(l, length, before, x);
      length = childBefore(l, length, length, x);
    }
    return before;
  }

  /** Returns how many elements below {@code index} are in cells below {@code cell}. */
  public long countBelow(long index, int cell) {
    if (cell == cells) {
      return index;
    }
    long below = 0;
    long length = padded;
    long before = index;
    for (int l = 0; l < parts.length && before > 0; l++) {
      int x = coordinate(cell, l);
      below += siblingsBefore(l, length, before, x);
      before = childBefore(l, length, before, x);
      length = childBefore(l, length, length, x);
    }
    return below;
  }

  /** Returns how many elements of {@code bounds}, which are intervals, are in {@code cell}. */
  public long countIn(long[] bounds, int cell) {
    long count = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      count += countBefore(bounds[i + 1], cell) - countBefore(bounds[i], cell);
    }
    return count;
  }

  /** Returns how many elements of {@code bounds} are in all cells less than {@code cell}. */
  public long countInBelow(long[] bounds, int cell) {
    long count = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      count += countBelow(bounds[i + 1], cell) - countBelow(bounds[i], cell);
    }
    return count;
  }

  /**
   * Returns the cell that holds element number {@code n} of {@code bounds}, counted cell by cell.
   * {@code n} is less than the number of elements of {@code bounds}. The cell is at least
   * {@code from}.
   */
  public int cellAt(long[] bounds, long n, int from) {
    int low = from;
    int high = cells - 1;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (countInBelow(bounds, middle + 1) > n) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  /**
   * Returns the global intervals of {@code cell} in local order: start, end, start, end, ...
   * Adjacent intervals are joined. An empty cell has the one interval 0, 0.
   */
  public long[] bounds(int cell) {
    long[] bounds = {0, padded};
    long length = padded;
    for (int l = 0; l < parts.length && length > 0; l++) {
      int x = coordinate(cell, l);
      bounds = splits[l] == 1 ? contiguous(l, bounds, length, x) : strided(l, bounds, length, x);
      length = childBefore(l, length, length, x);
    }
    return length == 0 || bounds[0] >= extent ? new long[2] : clipped(bounds);
  }

  private long[] clipped(long[] bounds) {
    int end = bounds.length;
    while (bounds[end - 2] >= extent) {
      end -= 2;
    }
    long[] real = end == bounds.length ? bounds : Arrays.copyOf(bounds, end);
    real[end - 1] = Math.min(real[end - 1], extent);
    return real;
  }

  private long[] contiguous(int level, long[] bounds, long length, int x) {
    Spans spans = new Spans();
    long start = start(level, length, x);
    spans.addSlice(bounds, start, start(level, length, x + 1));
    return spans.toArray();
  }

  private long[] strided(int level, long[] bounds, long length, int x) {
    Spans spans = new Spans();
    long piece = ceilDiv(length, splits[level]);
    long pieces = ceilDiv(length, piece);
    if (pieces > MAX_PIECES) {
      throw refusal.apply(
          "a strided shard of " + length + " elements into " + pieces + " pieces; at most "
              + MAX_PIECES + " are supported");
    }
    for (long i = 0; i < pieces; i++) {
      long at = i * piece;
      long pieceLength = Math.min(piece, length - at);
      spans.addSlice(
          bounds, at + start(level, pieceLength, x), at + start(level, pieceLength, x + 1));
    }
    return spans.toArray();
  }

  /**
   * Returns how many of the first {@code before} elements of a run belong to coordinate {@code x}
   * of a level.
   *
   * @param length number of elements of the run
   */
  private long childBefore(int level, long length, long before, int x) {
    return siblingsBefore(level, length, before, x + 1) - siblingsBefore(level, length, before, x);
  }

  /**
   * Returns how many of the first {@code before} elements of a run belong to coordinates less than
   * {@code x} of a level.
   *
   * @param length number of elements of the run
   */
  private long siblingsBefore(int level, long length, long before, int x) {
    if (before == 0) {
      return 0;
    }
    if (splits[level] == 1) {
      return Math.min(before, start(level, length, x));
    }
    long piece = ceilDiv(length, splits[level]);
    long whole = before / piece;
    long rest = before - whole * piece;
    long count = whole == 0 ? 0 : whole * start(level, Math.min(piece, length), x);
    if (rest > 0) {
      count += Math.min(rest, start(level, Math.min(piece, length - whole * piece), x));
    }
    return count;
  }

  /**
   * Returns the index at which the part of coordinate {@code x} begins in a piece of {@code length}
   * elements. For the number of coordinates, returns {@code length}.
   */
  private long start(int level, long length, int x) {
    if (length == 0) {
      return 0;
    }
    long unit = Math.min(units[level], length);
    long each = ceilDiv(ceilDiv(length, unit), parts[level]);
    if (each > length / unit) {
      return x == 0 ? 0 : length;
    }
    long step = each * unit;
    return x >= ceilDiv(length, step) ? length : x * step;
  }

  private static long ceilDiv(long a, long b) {
    return a == 0 ? 0 : (a - 1) / b + 1;
  }
}
