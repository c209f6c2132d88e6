// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Describes a box of a move that can move as a tensor with its own layouts. If a layout cuts a
 * dimension of which the leg is an interval, the leg lies within one run of one piece. The layout
 * then contains only the ranks that hold that piece.
 *
 * @param from the source layout over the ranks that hold the box
 * @param sourceStart the box's first indices in their local tensors
 * @param to the target layout over the ranks that get it
 * @param targetStart the box's first indices in their local tensors
 * @param shape the box's extents
 */
public record Leg(Layout from, long[] sourceStart, Layout to, long[] targetStart, long[] shape) {
  /** Returns the leg of a whole tensor. */
  static Leg all(Layout from, Layout to, long[] shape) {
    return new Leg(from, new long[shape.length], to, new long[shape.length], shape);
  }

  /**
   * Returns the legs of a tensor that is part of a target. The target has {@code extent} indices of
   * {@code dim}, and the tensor begins at {@code offset}.
   */
  static List<Leg> part(
      Layout from, Layout to, long[] shape, int dim, long offset, long extent) {
    long[] whole = shape.clone();
    whole[dim] = extent;
    return all(from, to, shape).along(dim, cells(to, dim, whole), offset, 0, extent);
  }

  /**
   * Returns the parts of this leg that lie in a window of the target's local tensors.
   *
   * @param dim a dimension
   * @param begin the window's first index of {@code dim}
   * @param end the index after the window's last
   */
  public List<Leg> within(int dim, long begin, long end) {
    return along(
        dim,
        cells(to, dim, shape),
        0,
        begin - targetStart[dim],
        Math.min(end - targetStart[dim], shape[dim]));
  }

  /**
   * Returns the legs for the target's runs.
   *
   * @param cells the indices of {@code dim} that the target's ranks hold
   * @param offset the index in the target at which this leg begins
   * @param begin the first local index of the requested range
   * @param end the local index after the last
   */
  private List<Leg> along(int dim, List<Cell> cells, long offset, long begin, long end) {
    List<Leg> legs = new ArrayList<>();
    List<Cell> sources = cells(from, dim, shape);
    for (Cell target : cells) {
      for (Runs.Run run : target.runs()) {
        long low = run.start() + Math.max(begin - run.local(), 0) - offset;
        long high = Math.min(run.end(), run.start() + end - run.local()) - offset;
        for (Cell source : sources) {
          for (Runs.Run other : source.runs()) {
            long first = Math.max(low, other.start());
            long length = Math.min(high, other.end()) - first;
            if (length > 0) {
              long sourceAt = other.local() + first - other.start();
              long targetAt = run.local() + first + offset - run.start();
              legs.add(
                  new Leg(
                      source.rest(),
                      moved(sourceStart, dim, sourceAt),
                      target.rest(),
                      moved(targetStart, dim, targetAt),
                      with(shape, dim, length)));
            }
          }
        }
      }
    }
    return legs;
  }

  private static long[] moved(long[] start, int dim, long by) {
    return with(start, dim, start[dim] + by);
  }

  private static long[] with(long[] values, int dim, long value) {
    long[] changed = values.clone();
    changed[dim] = value;
    return changed;
  }

  /**
   * Groups the ranks that hold the same runs of one dimension, with the layout of the other
   * dimensions.
   */
  private record Cell(List<Runs.Run> runs, Layout rest) {}

  private static boolean cuts(Layout layout, int dim) {
    return layout.placements().stream().anyMatch(placement -> cuts(placement, dim));
  }

  private static boolean cuts(Placement placement, int dim) {
    return dimension(placement) == dim;
  }

  /** Returns the dimension of a tensor that a placement cuts; -1 if none. */
  public static int dimension(Placement placement) {
    if (placement instanceof Placement.Shard shard) {
      return shard.dim();
    }
    return placement instanceof Placement.StridedShard strided ? strided.dim() : -1;
  }

  private static List<Cell> cells(Layout layout, int dim, long[] shape) {
    DeviceMesh mesh = layout.mesh();
    List<Integer> sizes = new ArrayList<>();
    List<Placement> placements = new ArrayList<>();
    for (int m = 0; m < mesh.ndim(); m++) {
      if (!cuts(layout.placements().get(m), dim)) {
        sizes.add(mesh.size(m));
        placements.add(layout.placements().get(m));
      }
    }
    if (sizes.isEmpty()) {
      sizes.add(1);
      placements.add(Placement.replicate());
    }
    Map<List<Integer>, List<Integer>> ranks = new LinkedHashMap<>();
    for (int rank : mesh.ranks()) {
      int[] coordinates = Objects.requireNonNull(mesh.coordinates(rank));
      List<Integer> cell = new ArrayList<>();
      for (int m = 0; m < mesh.ndim(); m++) {
        if (cuts(layout.placements().get(m), dim)) {
          cell.add(coordinates[m]);
        }
      }
      ranks.computeIfAbsent(cell, key -> new ArrayList<>()).add(rank);
    }
    DeviceMesh rest = DeviceMesh.of(sizes.stream().mapToInt(Integer::intValue).toArray());
    List<Cell> cells = new ArrayList<>();
    for (List<Integer> members : ranks.values()) {
      List<Runs.Run> runs = Runs.of(layout.localRegion(shape, members.get(0)), dim);
      int[] list = members.stream().mapToInt(Integer::intValue).toArray();
      cells.add(new Cell(runs, new Layout(rest.ranks(list), placements)));
    }
    return cells;
  }
}
