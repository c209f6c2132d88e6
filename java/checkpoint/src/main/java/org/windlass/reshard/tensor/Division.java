// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Describes how ranks hold a tensor. A fused tensor has parts that are cut separately, and a rank
 * holds its piece of every part, one after another. Any other tensor is cut by one layout, after
 * zeros are appended up to the padded extents.
 *
 * @param padded the extents that the layouts cut
 * @param dim the index of the dimension along which parts lie one after another
 * @param extents each part's extent of {@code dim}; empty for a tensor that is not in parts
 * @param layouts the layout of each part, or of the tensor; all have the same ranks
 */
public record Division(List<Long> padded, int dim, List<Long> extents, List<Layout> layouts) {
  public Division {
    padded = List.copyOf(padded);
    extents = List.copyOf(extents);
    layouts = List.copyOf(layouts);
  }

  /** Returns the division of a tensor that has one layout. */
  public static Division plain(Layout layout, long[] padded) {
    return plain(layout, Arrays.stream(padded).boxed().toList());
  }

  /** Returns the division of a tensor that has one layout. */
  public static Division plain(Layout layout, List<Long> padded) {
    return new Division(padded, 0, List.of(), List.of(layout));
  }

  /**
   * Returns the division of a tensor that is fused from parts.
   *
   * @param where text with which every message begins: the rule and its key
   * @param dim the index of the dimension along which the parts lie
   * @param extents each part's extent of {@code dim}, in all groups together
   * @param shape the extents of the fused tensor
   * @throws InvalidArgumentException if a layout gives ranks different extents of a part, or cuts
   *     inside a unit (indices that must stay together)
   */
  public static Division of(
      String where,
      Rule.Form.Parts parts,
      int dim,
      List<Long> extents,
      List<Layout> layouts,
      long[] shape) {
    if (extents.size() == 1) {
      return plain(layouts.get(0), shape);
    }
    if (parts.groups() > 1) {
      long size = Math.max(shape[dim] / parts.groups(), 1);
      Layout layout = grouped(layouts.get(0), dim, size);
      checkEven(where, "the fused tensor", layout, dim, shape);
      checkUnit(where, "the fused tensor", layout, dim, shape, size);
      return plain(layout, shape);
    }
    List<Layout> each =
        layouts.stream()
            .map(layout -> separate(where, layout, dim, parts.names(), extents))
            .toList();
    boolean isOne = each.stream().distinct().count() == 1;
    if (isOne && pieces(each.get(0), dim) == 1) {
      return plain(each.get(0), shape);
    }
    Division division = new Division(plain(each.get(0), shape).padded(), dim, extents, each);
    for (int i = 0; i < extents.size(); i++) {
      String which = "part \"" + parts.names().get(i) + "\"";
      checkEven(where, which, each.get(i), dim, division.partShape(i));
      checkUnit(where, which, each.get(i), dim, division.partShape(i), parts.unit().orElse(1));
    }
    division.checkFits(where);
    return isOne && extents.stream().distinct().count() == 1
        ? plain(strided(each.get(0), dim, extents.size()), shape)
        : division;
  }

  static Division of(String where, LayoutFile.Entry entry) {
    List<Long> padded = entry.padded().orElse(entry.shape());
    if (entry.parts().isEmpty()) {
      return plain(entry.layout().orElseThrow(), padded);
    }
    LayoutFile.Parts parts = entry.parts().get();
    Division division = new Division(padded, parts.dim(), parts.extents(), parts.layouts());
    for (int i = 0; i < parts.extents().size(); i++) {
      Layout layout = division.layouts.get(i);
      layout.check(where, division.partShape(i));
      checkEven(where, "part " + i, layout, division.dim, division.partShape(i));
    }
    division.checkFits(where);
    return division;
  }

  /** Returns the entry of a {@code layout.json} for a tensor of this division. */
  public LayoutFile.Entry entry(List<Long> shape, DType dtype) {
    return new LayoutFile.Entry(
        shape,
        Optional.of(dtype),
        isPlain() ? Optional.of(layout()) : Optional.empty(),
        isPlain() ? Optional.empty() : Optional.of(new LayoutFile.Parts(dim, extents, layouts)),
        padded.equals(shape) ? Optional.empty() : Optional.of(padded));
  }

  /** Returns the layout of the tensor, or of its first part. */
  public Layout layout() {
    return layouts.get(0);
  }

  /** Returns whether one layout cuts the whole tensor. */
  public boolean isPlain() {
    return extents.isEmpty();
  }

  /** Returns whether zeros are appended to a tensor of this shape. */
  public boolean isPadded(long[] shape) {
    return IntStream.range(0, shape.length).anyMatch(d -> padded.get(d) != shape[d]);
  }

  /**
   * Throws InvalidArgumentException unless the layouts can cut the extents.
   *
   * @param tensor the tensor's name, for messages
   */
  public void check(String tensor) {
    for (int i = 0; i < layouts.size(); i++) {
      layouts.get(i).check(tensor, partShape(i));
    }
  }

  /** Returns {@link #padded} as an array. */
  public long[] paddedShape() {
    return padded.stream().mapToLong(Long::longValue).toArray();
  }

  private long[] partShape(int part) {
    long[] shape = paddedShape();
    if (!isPlain()) {
      shape[dim] = extents.get(part);
    }
    return shape;
  }

  /** Returns the indices of a tensor of this shape that a rank holds. */
  Runs held(long[] shape, int rank) {
    Runs held = Runs.of(layout(), partShape(0), rank);
    if (!isPlain()) {
      List<Runs> parts = new ArrayList<>();
      for (int i = 0; i < extents.size(); i++) {
        parts.add(Runs.of(layouts.get(i), partShape(i), rank));
      }
      held = Runs.joined(parts, dim, extents);
    }
    for (int d = 0; d < shape.length; d++) {
      held = padded.get(d) == shape[d] ? held : held.clipped(d, 0, shape[d]);
    }
    return held;
  }

  /** Returns whether some rank has only a part of a dimension of a tensor of this shape. */
  public boolean isCut(long[] shape, int dim) {
    return layout().mesh().ranks().stream()
        .anyMatch(rank -> held(shape, rank).shape()[dim] != shape[dim]);
  }

  /** Returns the held indices that lie in part {@code part}, counted from 0. */
  public Runs held(long[] shape, int rank, int part) {
    long begin = extents.stream().limit(part).mapToLong(Long::longValue).sum();
    Runs all = held(shape, rank);
    return isPlain() ? all : all.clipped(dim, begin, begin + extents.get(part));
  }

  /** Returns the layout with shards of {@code dim} that keep {@code size} indices together. */
  private static Layout grouped(Layout layout, int dim, long size) {
    return Axes.mapped(
        layout, each -> each.equals(Placement.shard(dim)) ? Placement.shard(dim, size) : each);
  }

  /**
   * Returns the layout that cuts each part, given the layout of the fused tensor. A strided shard
   * of the fused tensor is a plain shard of each part, if all parts have the same extent.
   */
  private static Layout separate(
      String where, Layout layout, int dim, List<String> names, List<Long> extents) {
    Set<Boolean> kinds = new HashSet<>();
    for (Placement placement : layout.placements()) {
      boolean isStrided = placement instanceof Placement.StridedShard;
      if (Axes.dimension(placement) == dim && kinds.add(isStrided) && kinds.size() == 2) {
        throw new InvalidArgumentException(
            where + " cuts dimension " + dim + ", along which the parts are joined, both"
                + " plainly and strided; S" + dim + " alone cuts each part by itself");
      }
      boolean isEqual = extents.stream().distinct().count() == 1;
      if (placement instanceof Placement.StridedShard strided
          && strided.dim() == dim
          && (strided.split() != names.size() || !isEqual)) {
        throw new InvalidArgumentException(
            where + ": " + placement + " cuts what is joined into " + strided.split()
                + " equal runs, and the parts " + names + " have extents " + extents + "; S" + dim
                + " cuts each part by itself");
      }
    }
    return Axes.mapped(
        layout,
        each ->
            each instanceof Placement.StridedShard strided && strided.dim() == dim
                ? Placement.shard(dim)
                : each);
  }

  /**
   * Returns a layout of the whole tensor that cuts its equal parts in the same way as {@code
   * layout} cuts one part.
   */
  private static Layout strided(Layout layout, int dim, int parts) {
    return Axes.mapped(
        layout,
        each -> Axes.dimension(each) == dim ? Placement.stridedShard(dim, parts) : each);
  }

  /** Returns the number of pieces into which a layout cuts a dimension. */
  public static int pieces(Layout layout, int dim) {
    return IntStream.range(0, layout.mesh().ndim())
        .filter(m -> Axes.dimension(layout.placements().get(m)) == dim)
        .map(layout.mesh()::size)
        .reduce(1, (a, b) -> a * b);
  }

  private static void checkEven(
      String where, String which, Layout layout, int dim, long[] shape) {
    int pieces = pieces(layout, dim);
    for (int rank : layout.mesh().ranks()) {
      long held = layout.localShape(shape, rank)[dim];
      if (held * pieces != shape[dim]) {
        throw new InvalidArgumentException(
            where + ": " + which + " has extent " + shape[dim] + " along dimension " + dim
                + ", of which a rank would hold " + held + "; parts are joined where " + pieces
                + " equal pieces make each. Cut them for fewer ranks, or leave them apart");
      }
    }
  }

  /** Throws InvalidArgumentException if a layout cuts inside a unit of {@code unit} indices. */
  public static void checkUnit(
      String where, String which, Layout layout, int dim, long[] shape, long unit) {
    for (int rank : layout.mesh().ranks()) {
      for (Runs.Run run : Runs.of(layout, shape, rank).dims().get(dim)) {
        if (run.start() % unit != 0 || run.end() % unit != 0 && run.end() != shape[dim]) {
          long units = shape[dim] / unit;
          int ranks = layout.mesh().size();
          boolean isShared = units > 0 && units * unit == shape[dim] && ranks % units == 0;
          throw new InvalidArgumentException(
              where + ": each rank would hold " + (run.end() - run.start()) + " of the "
                  + shape[dim] + " of " + which + " along dimension " + dim
                  + ", which are no whole units of " + unit + "; give it a layout of its own, as \""
                  + (isShared
                      ? units + "x" + ranks / units + ":S" + dim + ",R\": " + ranks / units
                          + " ranks share each unit"
                      : ranks + ":R\""));
        }
      }
    }
  }

  /**
   * Checks that each rank holds whole groups of a part that was split off, or an equal share of one
   * group.
   *
   * @param groups the number of groups; all groups have the same number of indices of {@code dim}
   */
  public static void checkGroups(
      String where, String which, Layout layout, int dim, long[] shape, long groups) {
    long group = Math.max(shape[dim] / groups, 1);
    for (int rank : layout.mesh().ranks()) {
      for (Runs.Run run : Runs.of(layout, shape, rank).dims().get(dim)) {
        long held = run.end() - run.start();
        boolean isWhole = run.start() % group == 0 && run.end() % group == 0;
        if (!isWhole && (group % held != 0 || run.start() % held != 0)) {
          throw new InvalidArgumentException(
              where + ": a rank would hold indices " + run.start() + " to " + run.end() + " of "
                  + which + " along dimension " + dim + ", which has " + groups
                  + " groups of " + group + "; cut the dimension between groups, or cut each group"
                  + " into equal pieces");
        }
      }
    }
  }

  /** Throws unless each rank's pieces of all parts differ only in their extent of {@code dim}. */
  private void checkFits(String where) {
    for (Layout other : layouts) {
      if (!Set.copyOf(other.mesh().ranks()).equals(Set.copyOf(layout().mesh().ranks()))) {
        throw new InvalidArgumentException(
            where + ": the layouts of the parts, such as " + layout() + " and " + other
                + ", are not on the same ranks; add R for the ranks that share a piece");
      }
      if (other.hasPartial() && !other.equals(layout())) {
        throw new InvalidArgumentException(
            where + ": holds P in " + other + " and not in " + layout()
                + "; give all parts the same layout, since their terms are reduced together");
      }
    }
    for (int rank : layout().mesh().ranks()) {
      Set<List<Long>> others = new HashSet<>();
      for (int i = 0; i < extents.size(); i++) {
        long[] local = layouts.get(i).localShape(partShape(i), rank);
        local[dim] = 0;
        others.add(Arrays.stream(local).boxed().toList());
      }
      if (others.size() > 1) {
        throw new InvalidArgumentException(
            where + ": the layouts of the parts cut other dimensions than " + dim
                + " differently, so that their pieces do not lie one after another on rank " + rank
                + "; give them layouts that differ along dimension " + dim + " only");
      }
    }
  }

  @Override
  public String toString() {
    return isPlain()
        ? layout().toString()
        : "parts of extents " + extents + " along dimension " + dim + ", each cut separately as "
            + String.join(", ", layouts.stream().distinct().map(Layout::toString).toList());
  }
}
