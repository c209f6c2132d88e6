// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Cuts a tensor into tiles: boxes of equal extents, which are smaller at the end of a dimension.
 *
 * @param extents the extents of the tensor
 * @param step the extents of a tile
 */
record Grid(long[] extents, long[] step) {
  /**
   * Cuts a tensor into tiles that have long contiguous rows in every file. A tile grows until, in
   * each order of dimensions, its rows have {@code least} elements. Then it grows along the rows in
   * the last order.
   *
   * @param orders the orders of dimensions in files, each innermost dimension first
   * @param least number of elements
   * @param most largest number of elements of a tile; a tile has at least one element
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

  /** Returns the order of dimensions in a row-major file, innermost dimension first. */
  static List<Integer> rowMajor(int ndim) {
    return IntStream.range(0, ndim).map(d -> ndim - 1 - d).boxed().toList();
  }

  /** Extends {@code step} until rows have {@code least} elements or tiles have {@code most}. */
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

  long count() {
    long count = 1;
    for (int d = 0; d < step.length; d++) {
      count *= parts(d);
    }
    return count;
  }

  /** Returns the first index of a tile in each dimension. Tiles are numbered in row-major order. */
  long[] start(long number) {
    long[] start = new long[step.length];
    for (int d = step.length - 1; d >= 0; d--) {
      start[d] = number % parts(d) * step[d];
      number /= parts(d);
    }
    return start;
  }

  long[] shape(long[] start) {
    long[] shape = step.clone();
    Arrays.setAll(shape, d -> Math.min(step[d], extents[d] - start[d]));
    return shape;
  }
}
