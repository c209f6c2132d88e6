// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.ArrayList;
import java.util.List;

/**
 * Represents the part of a target tensor that is written at one time: one range of bytes in each of
 * its files.
 *
 * <p>It is an interval of the local indices of one dimension, and single indices of the dimensions
 * before it. These are equal on every rank. The dimensions after it are whole.
 *
 * @param sides the intervals, outermost dimension first
 */
public record Window(List<Side> sides) {
  /** Represents local indices from {@code begin} to {@code end} of a dimension. */
  public record Side(int dim, long begin, long end) {}

  public Window {
    sides = List.copyOf(sides);
  }

  /**
   * Cuts the local tensors of a target into windows.
   *
   * @param extents the extents of the largest local tensor
   * @param bits the bits of an element, on all ranks together
   * @param unit the granularity of cuts in the last dimension, in elements
   * @param bytes the size limit of a window, unless a single unit is larger
   */
  public static List<Window> cut(long[] extents, long bits, int unit, long bytes) {
    List<Window> windows = new ArrayList<>();
    cut(extents, 0, bits, unit, bytes, List.of(), windows);
    return windows;
  }

  private static void cut(
      long[] extents,
      int dim,
      long bits,
      int unit,
      long bytes,
      List<Side> outer,
      List<Window> windows) {
    double inner = bits / 8.0;
    for (int d = dim + 1; d < extents.length; d++) {
      inner *= extents[d];
    }
    if (dim == extents.length || inner * extents[dim] <= bytes) {
      windows.add(new Window(outer));
      return;
    }
    int least = dim == extents.length - 1 ? unit : 1;
    long step = Math.max((long) (bytes / inner) / least * least, least);
    for (long begin = 0; begin < extents[dim]; begin += step) {
      List<Side> sides = new ArrayList<>(outer);
      sides.add(new Side(dim, begin, Math.min(extents[dim], begin + step)));
      cut(extents, step == 1 ? dim + 1 : extents.length, bits, unit, bytes, sides, windows);
    }
  }

  /** Returns the part of a cut in the dimensions that this window cuts, as one value. */
  List<Long> key(Needed.Cut cut) {
    List<Long> key = new ArrayList<>();
    for (Side side : sides) {
      key.add(cut.start()[side.dim()]);
      key.add(cut.shape()[side.dim()]);
    }
    return key;
  }

  /** Returns the window's first indices in a local tensor. */
  public long[] start(int ndim) {
    long[] start = new long[ndim];
    sides.forEach(side -> start[side.dim()] = side.begin());
    return start;
  }

  /** Returns the window's extents in a local tensor of this shape. */
  public long[] shape(long[] local) {
    long[] shape = local.clone();
    for (Side side : sides) {
      long end = Math.min(side.end(), local[side.dim()]);
      shape[side.dim()] = Math.max(end - side.begin(), 0);
    }
    return shape;
  }

  /** Returns the first element of the window in a local tensor of this shape. */
  long firstElement(long[] local) {
    long element = 0;
    long[] start = start(local.length);
    for (int d = 0; d < local.length; d++) {
      element = element * local[d] + start[d];
    }
    return element;
  }
}
