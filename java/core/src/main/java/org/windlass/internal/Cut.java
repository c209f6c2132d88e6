// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Arrays;
import java.util.List;

/**
 * Describes how one layout cuts one tensor dimension. Each mesh dimension that shards the tensor
 * dimension is called a level; levels are in the order in which they cut. A cell is the part of the
 * tensor dimension that a rank holds. Ranks with the same coordinate on every level hold the same
 * cell. Cells are numbered in row-major order of these coordinates. Every element is in exactly one
 * cell. In a rank's local tensor, the elements of a cell are in ascending order. The methods that
 * count elements take time proportional to the number of levels.
 *
 * <p>Cuts divide the padded extent. Counts and lists include only real elements, without padding.
 * In a cell, padding comes after the real elements.
 */
public final class Cut {
  /**
   * One mesh dimension that shards the tensor dimension. Each level cuts the parts that the levels
   * before have made. It splits a part into {@code split} pieces of equal length. It then divides
   * each piece among its coordinates, in whole units.
   *
   * @param meshDim index of the mesh dimension
   * @param parts number of coordinates of the mesh dimension
   * @param split number of pieces; above 1, all pieces and all their parts have equal lengths
   * @param unit number of elements that stay together
   */
  public record Level(int meshDim, int parts, int split, long unit) {
    /** Returns true if this level may cut at any element, as {@code torch.chunk} does. */
    public boolean isChunk() {
      return split == 1 && unit == 1;
    }

    /** Returns true if all coordinates of this level get equal parts of {@code length} elements. */
    public boolean isEven(long length) {
      return length % unit == 0 && length / unit % ((long) parts * split) == 0;
    }

    private long[] part(long[] bounds, long length, int x) {
      Spans spans = new Spans();
      long piece = length / split;
      long start = start(piece, x);
      long end = start(piece, x + 1);
      for (long at = 0; at < length; at += piece) {
        spans.addSlice(bounds, at + start, at + end);
      }
      return spans.toArray();
    }

    /**
     * Returns how many of elements 0 to {@code before - 1} belong to the first coordinates.
     *
     * @param piece number of elements of each piece, at least 1
     * @param start index in a piece at which the part of the next coordinate begins
     */
    private long countBelow(long piece, long before, long start) {
      return split == 1
          ? Math.min(before, start)
          : before / piece * start + Math.min(before % piece, start);
    }

    /**
     * Returns the index in a piece at which the part of coordinate {@code x} begins. If {@code x}
     * is the number of coordinates, returns {@code piece}.
     *
     * @param piece number of elements of the piece, at least 1
     */
    private long start(long piece, int x) {
      long step = step(piece);
      return x > (piece - 1) / step ? piece : x * step;
    }

    /**
     * Returns the number of elements of a piece that each coordinate gets; the last coordinates may
     * get fewer.
     */
    private long step(long piece) {
      long whole = Math.min(unit, piece);
      if (whole == 1) {
        return ceilDiv(piece, parts);
      }
      long each = ceilDiv(ceilDiv(piece, whole), parts);
      return each > piece / whole ? piece : each * whole;
    }

    private static long ceilDiv(long a, long b) {
      return (a - 1) / b + 1;
    }
  }

  private final long padded;
  private final long extent;
  private final List<Level> levels;

  /** For each level, the number of cells that have the same coordinates up to this level. */
  private final int[] strides;

  private final int cells;

  /**
   * Creates the cut of one dimension.
   *
   * @param extent number of real elements, which come before the padding
   * @param padded number of elements with padding
   * @param levels the levels, in the order in which they cut
   */
  public Cut(long extent, long padded, List<Level> levels) {
    this.padded = padded;
    this.extent = extent;
    this.levels = levels;
    this.strides = new int[levels.size()];
    int stride = 1;
    for (int l = strides.length - 1; l >= 0; l--) {
      strides[l] = stride;
      stride *= levels.get(l).parts();
    }
    this.cells = stride;
  }

  public int levels() {
    return strides.length;
  }

  public int meshDim(int level) {
    return levels.get(level).meshDim();
  }

  public int cells() {
    return cells;
  }

  /**
   * Returns the cell of a rank.
   *
   * @param meshCoordinates the rank's coordinate on each mesh dimension
   */
  public int cell(int[] meshCoordinates) {
    int cell = 0;
    for (int l = 0; l < strides.length; l++) {
      cell += meshCoordinates[meshDim(l)] * strides[l];
    }
    return cell;
  }

  /** Returns the coordinate on {@code level} of the ranks that hold {@code cell}. */
  public int coordinate(int cell, int level) {
    return cell / strides[level] % levels.get(level).parts();
  }

  /** Returns how many elements below global index {@code index} are in cells below {@code cell}. */
  private long countBelow(long index, int cell) {
    if (cell == cells) {
      return index;
    }
    long below = 0;
    long length = padded;
    long before = index;
    for (int l = 0; l < strides.length && before > 0; l++) {
      Level level = levels.get(l);
      int x = coordinate(cell, l);
      long piece = length / level.split;
      long start = level.start(piece, x);
      long end = level.start(piece, x + 1);
      long lower = level.countBelow(piece, before, start);
      below += lower;
      before = level.countBelow(piece, before, end) - lower;
      length = (end - start) * level.split;
    }
    return below;
  }

  /** Returns how many elements of intervals {@code bounds} are in cells below {@code cell}. */
  public long countInBelow(long[] bounds, int cell) {
    long count = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      count += countBelow(bounds[i + 1], cell) - countBelow(bounds[i], cell);
    }
    return count;
  }

  /**
   * Returns the cell of element {@code n}, from 0, if the elements of the half-open intervals
   * {@code bounds} are sorted by cell. The caller knows that the result is at least {@code from}.
   */
  public int cellAt(long[] bounds, long n, int from) {
    int low = from;
    int high = from; // usually the result is close to it
    for (int step = 1; high < cells - 1 && countInBelow(bounds, high + 1) <= n; step *= 2) {
      low = high + 1;
      high = Math.min(cells - 1, high + step);
    }
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
   * Returns the global half-open intervals of {@code cell} in local order: start, end, start, end,
   * ... Adjacent intervals are joined. For an empty cell, returns the interval 0, 0.
   */
  public long[] bounds(int cell) {
    long[] bounds = {0, padded};
    long length = padded;
    for (int l = 0; l < strides.length && length > 0; l++) {
      bounds = levels.get(l).part(bounds, length, coordinate(cell, l));
      length = 0;
      for (int i = 0; i < bounds.length; i += 2) {
        length += bounds[i + 1] - bounds[i];
      }
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
}
