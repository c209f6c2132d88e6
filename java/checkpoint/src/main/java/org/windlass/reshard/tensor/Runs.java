// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.List;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;

/**
 * Represents the indices of a tensor that a rank holds.
 *
 * @param dims for each dimension, the runs of consecutive global indices that the rank holds, in
 *     ascending order; they lie one after another in the rank's local tensor
 * @param shape the local tensor's extents
 */
public record Runs(List<List<Run>> dims, long[] shape) {
  /**
   * Maps global indices {@code start} to {@code end} (exclusive) to the local indices from {@code
   * local} on.
   */
  public record Run(long start, long end, long local) {}

  /**
   * Represents a box of elements of the local tensor.
   *
   * @param global the box's first global index, for each dimension
   * @param local the box's first local index, for each dimension
   */
  public record Box(long[] global, long[] local, long[] shape) {}

  /** Returns the indices of a tensor of this global shape that {@code rank} holds. */
  public static Runs of(Layout layout, long[] shape, int rank) {
    Region region = layout.localRegion(shape, rank);
    List<List<Run>> dims = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      List<Run> runs = new ArrayList<>();
      long local = 0;
      for (Region.Interval interval : region.intervals(d)) {
        runs.add(new Run(interval.start(), interval.end(), local));
        local += interval.length();
      }
      dims.add(runs);
    }
    return new Runs(dims, region.shape());
  }

  /**
   * Joins the held indices of several tensors that lie one after another along a dimension. The
   * tensors follow one another in the local tensor too.
   *
   * @param extents each tensor's global extent of the dimension
   */
  static Runs joined(List<Runs> parts, int dim, List<Long> extents) {
    List<Run> runs = new ArrayList<>();
    long[] shape = parts.get(0).shape().clone();
    shape[dim] = 0;
    long offset = 0;
    for (int i = 0; i < parts.size(); i++) {
      for (Run run : parts.get(i).dims().get(dim)) {
        runs.add(new Run(run.start() + offset, run.end() + offset, run.local() + shape[dim]));
      }
      offset += extents.get(i);
      shape[dim] += parts.get(i).shape()[dim];
    }
    List<List<Run>> dims = new ArrayList<>(parts.get(0).dims());
    dims.set(dim, runs);
    return new Runs(dims, shape);
  }

  /** Returns the runs within indices {@code begin} to {@code end} (exclusive) of a dimension. */
  Runs clipped(int dim, long begin, long end) {
    List<List<Run>> clipped = new ArrayList<>(dims);
    clipped.set(dim, cut(dim, begin, end));
    return new Runs(clipped, shape);
  }

  /** Returns the runs of a whole tensor. */
  public static Runs whole(long[] shape) {
    List<List<Run>> dims = new ArrayList<>();
    for (long extent : shape) {
      dims.add(extent == 0 ? List.of() : List.of(new Run(0, extent, 0)));
    }
    return new Runs(dims, shape.clone());
  }

  private List<Run> cut(int dim, long begin, long end) {
    List<Run> cut = new ArrayList<>();
    for (Run run : dims.get(dim)) {
      long low = Math.max(run.start(), begin);
      long high = Math.min(run.end(), end);
      if (low < high) {
        cut.add(new Run(low, high, run.local() + low - run.start()));
      }
    }
    return cut;
  }

  /**
   * Returns the number of held elements in a box of global indices.
   *
   * @param start the box's first index, for each dimension
   * @param shape the box's extents
   */
  public long elements(long[] start, long[] shape) {
    long elements = 1;
    for (int d = 0; d < start.length && elements > 0; d++) {
      long held = 0;
      for (Run run : cut(d, start[d], start[d] + shape[d])) {
        held += run.end() - run.start();
      }
      elements *= held;
    }
    return elements;
  }

  /**
   * Returns the box of local indices that are in a box of global indices. If a dimension has
   * several runs there, the result covers all of them. Its extents are 0 if nothing is held.
   */
  public Box span(long[] start, long[] shape) {
    int ndim = start.length;
    Box box = new Box(new long[ndim], new long[ndim], new long[ndim]);
    for (int d = 0; d < ndim; d++) {
      List<Run> runs = cut(d, start[d], start[d] + shape[d]);
      if (!runs.isEmpty()) {
        Run first = runs.get(0);
        Run last = runs.get(runs.size() - 1);
        box.global()[d] = first.start();
        box.local()[d] = first.local();
        box.shape()[d] = last.local() + last.end() - last.start() - first.local();
      }
    }
    return box;
  }

  /**
   * Returns the held elements in a box of global indices, as boxes. In each dimension, the indices
   * of a box are consecutive both globally and locally.
   */
  public List<Box> within(long[] start, long[] shape) {
    int ndim = start.length;
    List<List<Run>> cut = new ArrayList<>();
    for (int d = 0; d < ndim; d++) {
      cut.add(cut(d, start[d], start[d] + shape[d]));
      if (cut.get(d).isEmpty()) {
        return List.of();
      }
    }
    List<Box> boxes = new ArrayList<>();
    int[] at = new int[ndim];
    while (true) {
      Box box = new Box(new long[ndim], new long[ndim], new long[ndim]);
      for (int d = 0; d < ndim; d++) {
        Run run = cut.get(d).get(at[d]);
        box.global()[d] = run.start();
        box.local()[d] = run.local();
        box.shape()[d] = run.end() - run.start();
      }
      boxes.add(box);
      int d = ndim - 1;
      while (d >= 0 && ++at[d] == cut.get(d).size()) {
        at[d--] = 0;
      }
      if (d < 0) {
        return boxes;
      }
    }
  }
}
