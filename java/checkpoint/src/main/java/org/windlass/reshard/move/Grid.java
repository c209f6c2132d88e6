// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.Arrays;
import java.util.List;

/**
 * Cuts a tensor into tiles of equal extents, which are smaller at the end of a dimension.
 *
 * @param extents the extents of the tensor
 * @param step the extents of a tile
 */
record Grid(long[] extents, long[] step) {
  /**
   * Cuts a tensor so that a tile has rows of at least {@code least} elements in each of several
   * orders, and then the longest rows in the last order.
   *
   * @param orders the dimensions as they lie in files, innermost first
   * @param most the largest number of elements of a tile that is not a single one
   */
  static Grid of(long[] extents, List<List<Integer>> orders, long least, long most) {
    long[] step = new long[extents.length];
    Arrays.fill(step, 1);
    for (List<Integer> order : orders) {
      grow(step, extents, order, least, most);
    }
    grow(step, extents, orders.get(orders.size() - 1), most, most);
    for (int d = 0; d < step.length; d++) {
      long parts = (extents[d] + step[d] - 1) / step[d];
      step[d] = parts == 0 ? 1 : (extents[d] + parts - 1) / parts;
    }
    return new Grid(extents, step);
  }

  /** Extends tiles until they have rows of {@code least} elements, or {@code most} elements. */
  private static void grow(
      long[] step, long[] extents, List<Integer> order, long least, long most) {
    long row = 1;
    for (int dim : order) {
      long others = 1;
      for (int d = 0; d < step.length; d++) {
        others *= d == dim ? 1 : step[d];
      }
      long wanted = Math.min(extents[dim], (least + row - 1) / row);
      step[dim] = Math.max(step[dim], Math.min(wanted, most / others));
      row *= step[dim];
      if (step[dim] < extents[dim]) {
        return;
      }
    }
  }

  private long parts(int dim) {
    return (extents[dim] + step[dim] - 1) / step[dim];
  }

  /** Returns the number of tiles. */
  long count() {
    long count = 1;
    for (int d = 0; d < step.length; d++) {
      count *= parts(d);
    }
    return count;
  }

  /** Returns the first indices of a tile. Tiles are numbered in row-major order. */
  long[] start(long number) {
    long[] start = new long[step.length];
    for (int d = step.length - 1; d >= 0; d--) {
      start[d] = number % parts(d) * step[d];
      number /= parts(d);
    }
    return start;
  }

  /** Returns the extents of the tile that begins at {@code start}. */
  long[] shape(long[] start) {
    long[] shape = step.clone();
    Arrays.setAll(shape, d -> Math.min(step[d], extents[d] - start[d]));
    return shape;
  }
}
