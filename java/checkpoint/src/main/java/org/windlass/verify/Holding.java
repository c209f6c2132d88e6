// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.List;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Runs;

/**
 * Computes the indices of a tensor that a rank holds, directly from the definition of the
 * placements. For each dimension it lists the runs of consecutive indices in the rank's local
 * order. It shares no code with the planner and the reshard, which it checks.
 *
 * <p>The local tensor may be larger than the runs: zeros follow the elements of a padded tensor,
 * and a holding may be one part of a fused one.
 */
final class Holding {
  private Holding() {}

  /** Cuts each of {@code pieces} equal pieces by a mesh dimension of {@code ranks} ranks. */
  private record Cut(int meshDim, int ranks, long unit, int pieces) {}

  /** Returns the indices of a tensor of this global shape that {@code rank} holds. */
  static Runs of(Division division, long[] shape, int rank) {
    List<List<Runs.Run>> dims = List.of();
    List<Runs.Run> joined = new ArrayList<>();
    long offset = 0;
    for (int part = 0; part < division.layouts().size(); part++) {
      long[] extents = division.padded().stream().mapToLong(Long::longValue).toArray();
      if (!division.isPlain()) {
        extents[division.dim()] = division.extents().get(part);
      }
      dims = cut(division.layouts().get(part), extents, rank);
      if (extents.length > 0) {
        joined.addAll(clipped(dims.get(division.dim()), 0, Long.MAX_VALUE, offset));
        offset += extents[division.dim()];
      }
    }
    long[] local = new long[shape.length];
    for (int d = 0; d < shape.length; d++) {
      List<Runs.Run> numbered = new ArrayList<>();
      for (Runs.Run run : d == division.dim() ? joined : dims.get(d)) {
        numbered.add(new Runs.Run(run.start(), run.end(), local[d]));
        local[d] += run.end() - run.start();
      }
      dims.set(d, clipped(numbered, 0, shape[d], 0));
    }
    return new Runs(dims, local);
  }

  /** Returns those of the indices that are in part {@code part}, if the tensor has parts. */
  static Runs of(Division division, long[] shape, int rank, int part) {
    Runs all = of(division, shape, rank);
    if (division.isPlain()) {
      return all;
    }
    long begin = division.extents().stream().limit(part).mapToLong(Long::longValue).sum();
    long end = begin + division.extents().get(part);
    List<List<Runs.Run>> dims = new ArrayList<>(all.dims());
    dims.set(division.dim(), clipped(dims.get(division.dim()), begin, end, 0));
    return new Runs(dims, all.shape());
  }

  /** Returns the runs within {@code begin} to {@code end}, with global indices {@code shift} up. */
  static List<Runs.Run> clipped(List<Runs.Run> runs, long begin, long end, long shift) {
    List<Runs.Run> clipped = new ArrayList<>();
    for (Runs.Run run : runs) {
      long low = Math.max(run.start(), begin);
      long high = Math.min(run.end(), end);
      if (low < high) {
        clipped.add(new Runs.Run(low + shift, high + shift, run.local() + low - run.start()));
      }
    }
    return clipped;
  }

  private static List<List<Runs.Run>> cut(Layout layout, long[] shape, int rank) {
    int[] coordinates = coordinates(layout, rank);
    List<List<Runs.Run>> dims = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      List<Runs.Run> runs = List.of(new Runs.Run(0, shape[d], 0));
      for (Cut cut : cuts(layout, d)) {
        List<Runs.Run> joined = new ArrayList<>();
        for (int piece = 0; piece < cut.pieces(); piece++) {
          List<Runs.Run> one = chunk(runs, cut.pieces(), 1, piece);
          joined.addAll(chunk(one, cut.ranks(), cut.unit(), coordinates[cut.meshDim()]));
        }
        runs = joined;
      }
      dims.add(runs);
    }
    return dims;
  }

  /**
   * Returns the cuts of one dimension, in the order in which they apply. A plain shard cuts before
   * later mesh dimensions. A strided shard cuts each of the pieces that later plain shards make, if
   * their number equals its split. Otherwise it makes the pieces itself.
   */
  private static List<Cut> cuts(Layout layout, int dim) {
    List<Cut> cuts = new ArrayList<>();
    for (int m = layout.mesh().ndim() - 1; m >= 0; m--) {
      int ranks = layout.mesh().size(m);
      Placement placement = layout.placements().get(m);
      if (ranks > 1 && placement instanceof Placement.Shard shard && shard.dim() == dim) {
        cuts.add(0, new Cut(m, ranks, shard.unit(), 1));
      } else if (ranks > 1 && placement instanceof Placement.StridedShard s && s.dim() == dim) {
        int before = making(cuts, s.split());
        cuts.add(Math.max(before, 0), new Cut(m, ranks, 1, before < 0 ? s.split() : 1));
      }
    }
    return cuts;
  }

  /** Returns the number of leading cuts that together make {@code pieces} pieces; -1 if none do. */
  private static int making(List<Cut> cuts, int pieces) {
    int made = 1;
    int count = 0;
    while (made < pieces && count < cuts.size()) {
      Cut cut = cuts.get(count++);
      if (cut.pieces() > 1 || cut.unit() > 1) {
        return -1;
      }
      made *= cut.ranks();
    }
    return made == pieces ? count : -1;
  }

  /** Returns a rank's coordinates in the mesh, which lists its ranks in row-major order. */
  static int[] coordinates(Layout layout, int rank) {
    int place = layout.mesh().ranks().indexOf(rank);
    int[] coordinates = new int[layout.mesh().ndim()];
    for (int m = coordinates.length - 1; m >= 0; m--) {
      coordinates[m] = place % layout.mesh().size(m);
      place /= layout.mesh().size(m);
    }
    return coordinates;
  }

  /**
   * Cuts runs, which have n indices in all, into pieces, and returns one of them. A piece has
   * ceil(ceil(n/unit)/pieces) units; the last ones may be shorter or empty.
   */
  private static List<Runs.Run> chunk(List<Runs.Run> runs, int pieces, long unit, int index) {
    long extent = runs.stream().mapToLong(run -> run.end() - run.start()).sum();
    long units = extent / unit + (extent % unit == 0 ? 0 : 1);
    long each = units / pieces + (units % pieces == 0 ? 0 : 1);
    // A size above the extent has the same effect as the extent, which cannot overflow.
    long size = each > extent / unit ? extent : each * unit;
    long from = size == 0 ? 0 : index > extent / size ? extent : index * size;
    long to = from + Math.min(size, extent - from);
    List<Runs.Run> piece = new ArrayList<>();
    long at = 0;
    for (Runs.Run run : runs) {
      piece.addAll(clipped(List.of(run), run.start() + from - at, run.start() + to - at, 0));
      at += run.end() - run.start();
    }
    return piece;
  }

  static long[] rowMajor(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride *= shape[d];
    }
    return strides;
  }

  /** Returns the ranges of local indices that no run covers, as runs without global indices. */
  static List<Runs.Run> gaps(Runs held, int dim) {
    List<Runs.Run> gaps = new ArrayList<>();
    long at = 0;
    for (Runs.Run run : held.dims().get(dim)) {
      gaps.add(new Runs.Run(0, run.local() - at, at));
      at = run.local() + run.end() - run.start();
    }
    gaps.add(new Runs.Run(0, held.shape()[dim] - at, at));
    return gaps;
  }
}
