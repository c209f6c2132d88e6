// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Computes the indices of a tensor that a rank holds, directly from the definition of the
 * placements. For each dimension it lists the runs of consecutive indices in the rank's local
 * order. It shares no code with the planner, which it checks.
 *
 * <p>The local tensor may be larger than the runs: zeros follow the elements of a padded tensor,
 * and a holding may be one part of a fused one.
 */
final class Holding {
  /** Maps {@code length} global indices from {@code start} on to those from {@code local} on. */
  record Run(long start, long length, long local) {
    long end() {
      return start + length;
    }
  }

  private final List<List<Run>> dims;
  private final long[] shape;

  private Holding(List<List<Run>> dims, long[] shape) {
    this.dims = dims;
    this.shape = shape;
  }

  private Holding(List<List<Run>> dims) {
    this(
        dims,
        dims.stream().mapToLong(runs -> runs.stream().mapToLong(Run::length).sum()).toArray());
  }

  static Holding whole(long[] shape) {
    List<List<Run>> dims = new ArrayList<>();
    for (long extent : shape) {
      dims.add(List.of(new Run(0, extent, 0)));
    }
    return new Holding(dims);
  }

  /** Returns the indices of a tensor of this global shape that {@code rank} holds. */
  static Holding of(Layout layout, long[] shape, int rank) {
    int[] coordinates = coordinates(layout, rank);
    List<List<Run>> dims = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      List<Run> runs = List.of(new Run(0, shape[d], 0));
      for (Cut cut : cuts(layout, d)) {
        List<Run> joined = new ArrayList<>();
        for (int piece = 0; piece < cut.pieces(); piece++) {
          List<Run> one = chunk(runs, cut.pieces(), 1, piece);
          joined.addAll(chunk(one, cut.ranks(), cut.unit(), coordinates[cut.meshDim()]));
        }
        runs = joined;
      }
      dims.add(numbered(runs));
    }
    return new Holding(dims);
  }

  /** Cuts each of {@code pieces} equal pieces by a mesh dimension of {@code ranks} ranks. */
  private record Cut(int meshDim, int ranks, long unit, int pieces) {}

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

  /**
   * Returns the indices of a tensor that {@code rank} holds, as a {@code layout.json} describes it.
   */
  static Holding of(LayoutFile.Entry entry, int rank) {
    if (entry.parts().isPresent()) {
      return of(entry, rank, 0, entry.parts().get().extents().size());
    }
    Holding held = of(entry.layout().orElseThrow(), longs(entry.padded().orElse(entry.shape())), rank);
    for (int d = 0; d < held.ndim(); d++) {
      held = held.within(d, 0, entry.shape().get(d));
    }
    return held;
  }

  /** Returns the indices that {@code rank} holds of parts {@code first} to {@code last - 1}. */
  static Holding of(LayoutFile.Entry entry, int rank, int first, int last) {
    LayoutFile.Parts parts = entry.parts().orElseThrow();
    int dim = parts.dim();
    List<Run> runs = new ArrayList<>();
    Holding held = null;
    long offset = 0;
    for (int i = 0; i < parts.extents().size(); i++) {
      long[] shape = longs(entry.shape());
      shape[dim] = parts.extents().get(i);
      held = of(parts.layouts().get(i), shape, rank);
      for (Run run : held.runs(dim)) {
        runs.add(new Run(run.start() + offset, run.length(), 0));
      }
      offset += shape[dim];
    }
    List<List<Run>> dims = new ArrayList<>(Objects.requireNonNull(held).dims);
    dims.set(dim, numbered(runs));
    long begin = parts.extents().stream().limit(first).mapToLong(Long::longValue).sum();
    long end = parts.extents().stream().limit(last).mapToLong(Long::longValue).sum();
    return new Holding(dims).within(dim, begin, end);
  }

  static long[] longs(List<Long> numbers) {
    return numbers.stream().mapToLong(Long::longValue).toArray();
  }

  /** Returns the held indices in {@code begin} to {@code end} (exclusive) of a dimension. */
  private Holding within(int dim, long begin, long end) {
    Place place = new Place(List.of(), dim, begin, begin, end - begin);
    List<List<Run>> fewer = new ArrayList<>(dims);
    fewer.set(dim, dims.get(dim).stream().flatMap(place::of).toList());
    return new Holding(fewer, shape);
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
  private static List<Run> chunk(List<Run> runs, int pieces, long unit, int index) {
    long extent = runs.stream().mapToLong(Run::length).sum();
    long units = extent / unit + (extent % unit == 0 ? 0 : 1);
    long each = units / pieces + (units % pieces == 0 ? 0 : 1);
    // A size above the extent has the same effect as the extent, which cannot overflow.
    long size = each > extent / unit ? extent : each * unit;
    long from = size == 0 ? 0 : index > extent / size ? extent : index * size;
    long to = from + Math.min(size, extent - from);
    List<Run> piece = new ArrayList<>();
    long at = 0;
    for (Run run : runs) {
      long begin = Math.max(from, at);
      long end = Math.min(to, at + run.length());
      if (begin < end) {
        piece.add(new Run(run.start() + begin - at, end - begin, 0));
      }
      at += run.length();
    }
    return piece;
  }

  private static List<Run> numbered(List<Run> runs) {
    List<Run> numbered = new ArrayList<>();
    long local = 0;
    for (Run run : runs) {
      if (run.length() > 0) {
        numbered.add(new Run(run.start(), run.length(), local));
        local += run.length();
      }
    }
    return numbered;
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

  /**
   * Maps indices of this tensor to indices of another tensor, of which this one is a part.
   *
   * @param axes for each dimension of the other tensor, the index of this tensor's dimension, or -1
   *     for a new one of extent 1
   * @param dim the index of the other tensor's dimension along which this tensor is a part
   * @param source the first index along {@code dim} in this tensor
   * @param target the same element's index in the other tensor
   * @param length the number of indices along {@code dim}
   */
  record Place(List<Integer> axes, int dim, long source, long target, long length) {
    /** Returns the mapping of a tensor with {@code ndim} dimensions that keeps all indices. */
    static Place whole(int ndim) {
      List<Integer> axes = IntStream.range(0, ndim).boxed().toList();
      return new Place(axes, 0, 0, 0, Long.MAX_VALUE);
    }

    private Stream<Run> of(Run run) {
      long begin = Math.max(run.start(), source);
      long length = Math.min(run.end() - begin, length() - (begin - source));
      return length > 0
          ? Stream.of(new Run(begin - source + target, length, run.local() + begin - run.start()))
          : Stream.empty();
    }
  }

  /** Returns this holding with its indices mapped to those of another tensor. */
  Holding placed(Place place) {
    List<List<Run>> placed = new ArrayList<>();
    for (int d = 0; d < place.axes().size(); d++) {
      int axis = place.axes().get(d);
      List<Run> runs = axis < 0 ? List.of(new Run(0, 1, 0)) : dims.get(axis);
      placed.add(d == place.dim() ? runs.stream().flatMap(place::of).toList() : runs);
    }
    return new Holding(placed, shape);
  }

  int ndim() {
    return dims.size();
  }

  List<Run> runs(int dim) {
    return dims.get(dim);
  }

  long[] shape() {
    return shape;
  }

  long elements() {
    return dims.stream()
        .mapToLong(runs -> runs.stream().mapToLong(Run::length).sum())
        .reduce(1, (a, b) -> a * b);
  }

  /** Returns the ranges of local indices of a dimension that no run covers, which hold zeros. */
  List<Run> gaps(int dim) {
    List<Run> gaps = new ArrayList<>();
    long at = 0;
    for (Run run : dims.get(dim)) {
      gaps.add(new Run(0, run.local() - at, at));
      at = run.local() + run.length();
    }
    gaps.add(new Run(0, shape[dim] - at, at));
    return gaps;
  }

  static long elements(long[] shape) {
    long elements = 1;
    for (long extent : shape) {
      elements *= extent;
    }
    return elements;
  }

  /** Returns the global indices of a held element; elements are numbered in row-major order. */
  long[] index(long element) {
    long[] index = new long[dims.size()];
    for (int d = index.length - 1; d >= 0; d--) {
      long local = element % shape[d];
      element /= shape[d];
      for (Run run : dims.get(d)) {
        if (local >= run.local() && local < run.local() + run.length()) {
          index[d] = run.start() + local - run.local();
        }
      }
    }
    return index;
  }

  boolean contains(long[] index) {
    for (int d = 0; d < index.length; d++) {
      long at = index[d];
      if (dims.get(d).stream().noneMatch(run -> at >= run.start() && at < run.end())) {
        return false;
      }
    }
    return true;
  }
}
