// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Cuts a tensor into tiles of equal extents, which are smaller at the end of a dimension.
 *
 * @param extents the extents of the tensor
 * @param step the extents of a tile
 */
record Grid(long[] extents, long[] step) {
  /**
   * Cuts a tensor so that a tile has rows of about equal length in each of several orders.
   *
   * @param orders the dimensions as they lie in a file, innermost first
   * @param most the largest number of elements of a tile
   */
  static Grid of(long[] extents, List<List<Integer>> orders, long most) {
    long[] step = new long[extents.length];
    Arrays.fill(step, 1);
    long elements = 1;
    List<List<Integer>> open = new ArrayList<>(orders);
    while (!open.isEmpty()) {
      List<Integer> shortest =
          open.stream().min(Comparator.comparingLong(order -> row(order, extents, step))).get();
      int dim = shortest.stream().filter(d -> step[d] < extents[d]).findFirst().orElse(-1);
      long grown = 0;
      if (dim >= 0) {
        long rest = elements / step[dim];
        grown = Math.min(Math.min(2 * step[dim], extents[dim]), most / rest);
      }
      if (dim < 0 || grown <= step[dim]) {
        open.remove(shortest);
      } else {
        elements = elements / step[dim] * grown;
        step[dim] = grown;
      }
    }
    for (int d = 0; d < step.length; d++) {
      long parts = (extents[d] + step[d] - 1) / step[d];
      step[d] = parts == 0 ? 1 : (extents[d] + parts - 1) / parts;
    }
    return new Grid(extents, step);
  }

  /** Returns the number of elements that lie one after another in a tile. */
  private static long row(List<Integer> order, long[] extents, long[] step) {
    long row = 1;
    for (int d : order) {
      row *= step[d];
      if (step[d] < extents[d]) {
        break;
      }
    }
    return row;
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
