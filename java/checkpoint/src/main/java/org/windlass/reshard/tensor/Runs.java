// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;

/**
 * Represents the part of a tensor that a rank holds.
 *
 * @param dims for each dimension the runs of global indices that lie one after another in the
 *     rank's local tensor
 * @param shape the local tensor's extents
 */
public record Runs(List<List<Run>> dims, long[] shape) {
  /** Maps global indices {@code start} to {@code end} to local indices from {@code local} on. */
  public record Run(long start, long end, long local) {}

  /** Represents a box that is contiguous in the indices of a global tensor and of a local one. */
  public record Box(long[] global, long[] local, long[] shape) {}

  /** Returns the part that {@code rank} holds under {@code layout}. */
  public static Runs of(Layout layout, long[] shape, int rank) {
    Region region = layout.localRegion(shape, rank);
    List<List<Run>> dims = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      dims.add(of(region, d));
    }
    return new Runs(dims, region.shape());
  }

  /** Returns the runs of one dimension of a rank's region. */
  public static List<Run> of(Region region, int dim) {
    List<Run> runs = new ArrayList<>();
    long local = 0;
    for (Region.Interval interval : region.intervals(dim)) {
      runs.add(new Run(interval.start(), interval.end(), local));
      local += interval.length();
    }
    return runs;
  }

  /**
   * Joins the held parts of several tensors that lie one after another along a dimension, globally
   * and locally.
   *
   * @param extents each tensor's extent of the dimension
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

  /** Returns the part of these runs within some indices of a dimension, in the same local tensor. */
  Runs clipped(int dim, long begin, long end) {
    List<Run> runs = new ArrayList<>();
    dims.get(dim).forEach(run -> add(runs, run, begin, end));
    List<List<Run>> clipped = new ArrayList<>(dims);
    clipped.set(dim, runs);
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

  /** Returns the held boxes within a box of global indices. */
  public List<Box> within(long[] start, long[] shape) {
    return boxes(start, shape, run -> 0);
  }

  /** Returns the held boxes within a box of local indices. */
  public List<Box> locally(long[] start, long[] shape) {
    return boxes(start, shape, run -> run.start() - run.local());
  }

  /**
   * Returns the held boxes within a box.
   *
   * @param origin returns, for a run, the global index from which {@code start} counts
   */
  private List<Box> boxes(long[] start, long[] shape, ToLongFunction<Run> origin) {
    List<List<Run>> cut = new ArrayList<>();
    for (int d = 0; d < start.length; d++) {
      List<Run> runs = new ArrayList<>();
      for (Run run : dims.get(d)) {
        long first = origin.applyAsLong(run) + start[d];
        add(runs, run, first, first + shape[d]);
      }
      if (runs.isEmpty()) {
        return List.of();
      }
      cut.add(runs);
    }
    return boxes(cut);
  }

  private static void add(List<Run> runs, Run run, long begin, long end) {
    long low = Math.max(run.start(), begin);
    long high = Math.min(run.end(), end);
    if (low < high) {
      runs.add(new Run(low, high, run.local() + low - run.start()));
    }
  }

  private static List<Box> boxes(List<List<Run>> cut) {
    int ndim = cut.size();
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
