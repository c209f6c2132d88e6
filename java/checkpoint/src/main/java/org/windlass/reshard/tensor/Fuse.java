// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * The cut of a target that a rule fuses of parts: each part by itself, so that a rank holds its
 * piece of every part, one after another.
 *
 * @param dim the dimension along which the parts lie
 * @param extents each part's extent of it
 * @param layout what cuts each part, evenly
 * @param pieces how many pieces of {@code dim} it makes
 */
public record Fuse(int dim, List<Long> extents, Layout layout, int pieces) {
  /**
   * How {@code to} cuts the parts; empty where it does not cut them along {@code dim}.
   *
   * @param where the rule and the layout, which begin every complaint
   * @throws InvalidArgumentException if the pieces of a part would differ, or {@code to} cuts what
   *     is joined and not the parts
   */
  public static Optional<Fuse> of(
      String where, Layout to, Rule.Join.Parts join, List<Assembly.Part> parts) {
    int dim = join.dim();
    List<String> names = join.names();
    List<Long> extents = parts.stream().map(part -> part.shape()[dim]).toList();
    List<Placement> placements = new ArrayList<>();
    int pieces = 1;
    boolean cuts = false;
    requireOneMeaning(where, to, dim);
    for (int m = 0; m < to.mesh().ndim(); m++) {
      Placement placement = to.placements().get(m);
      if (placement instanceof Placement.StridedShard strided && strided.dim() == dim) {
        if (strided.split() != parts.size() || extents.stream().distinct().count() > 1) {
          throw new InvalidArgumentException(
              where + ": " + placement + " cuts what is joined into " + strided.split()
                  + " equal runs, and the parts " + names + " have extents " + extents + "; S" + dim
                  + " cuts each part by itself");
        }
        placement = Placement.shard(dim);
      }
      if (placement instanceof Placement.Shard shard && shard.dim() == dim) {
        cuts = true;
        pieces *= to.mesh().size(m);
      }
      placements.add(placement);
    }
    if (!cuts || parts.size() == 1) {
      return Optional.empty();
    }
    Fuse fuse = new Fuse(dim, extents, new Layout(to.mesh(), placements), pieces);
    for (int i = 0; i < parts.size(); i++) {
      fuse.checkEven(where, names.get(i), parts.get(i).shape());
      fuse.checkUnit(where, names.get(i), extents.get(i), join.unit());
    }
    return Optional.of(fuse);
  }

  /**
   * A plain cut means each part by itself, and a strided one what is joined: of one dimension
   * either or the other.
   */
  private static void requireOneMeaning(String where, Layout to, int dim) {
    boolean strided =
        to.placements().stream().anyMatch(p -> p instanceof Placement.StridedShard s && s.dim() == dim);
    boolean plain =
        to.placements().stream().anyMatch(p -> p instanceof Placement.Shard s && s.dim() == dim);
    if (strided && plain) {
      throw new InvalidArgumentException(
          where + " cuts dimension " + dim + ", along which the parts are joined, both"
              + " plainly and strided; S" + dim + " alone cuts each part by itself");
    }
  }

  private void checkUnit(String where, String name, long extent, OptionalLong unit) {
    if (unit.isPresent() && extent / pieces % unit.getAsLong() != 0) {
      long units = extent / unit.getAsLong();
      int ranks = layout.mesh().size();
      boolean isWhole = units * unit.getAsLong() == extent;
      boolean isShared = isWhole && ranks == pieces && pieces % units == 0;
      throw new InvalidArgumentException(
          where + ": each rank would hold " + extent / pieces + " of the " + extent
              + " of part \"" + name + "\" along dimension " + dim
              + ", which are no whole units of " + unit.getAsLong()
              + "; leave the parts apart, with a rule for the tensors of this extent whose \"to\""
              + " is \""
              + (isShared
                  ? units + "x" + ranks / units + ":S" + dim + ",R\": " + ranks / units
                      + " ranks share each unit"
                  : ranks + ":R\""));
    }
  }

  private void checkEven(String where, String name, long[] shape) {
    for (int rank : layout.mesh().ranks()) {
      long held = layout.localShape(shape, rank)[dim];
      if (held * pieces != shape[dim]) {
        throw new InvalidArgumentException(
            where + ": part \"" + name + "\" has extent " + shape[dim] + " along dimension "
                + dim + ", of which a rank would hold " + held + "; parts are joined where "
                + pieces + " equal pieces make each, and left apart otherwise");
      }
    }
  }

  /**
   * Says in {@code layout.json} how the tensor is cut, where no layout of the whole does: its parts
   * are cut and differ in extent.
   *
   * @param files the mesh by the numbers of the files
   */
  public Optional<LayoutFile.Parts> parts(DeviceMesh files) {
    return pieces > 1 && extents.stream().distinct().count() > 1
        ? Optional.of(
            new LayoutFile.Parts(dim, extents, new Layout(files, layout.placements())))
        : Optional.empty();
  }

  /**
   * The layout by which ranks hold the tensor. Where all parts are equal it is that of their
   * concatenation, strided; else it gives the ranks' shapes, and {@link #runs} what they hold.
   */
  public Layout whole(Layout to) {
    if (extents.stream().distinct().count() > 1) {
      return to;
    }
    List<Placement> placements = new ArrayList<>();
    for (Placement placement : layout.placements()) {
      placements.add(
          placement instanceof Placement.Shard shard && shard.dim() == dim
              ? Placement.stridedShard(dim, extents.size())
              : placement);
    }
    return new Layout(to.mesh(), placements);
  }

  /** Where in each rank's tensor its piece of the part begins that stands at {@code offset}. */
  long place(long offset) {
    return offset / pieces;
  }

  /** What a rank holds of the parts' concatenation. */
  Runs runs(long[] shape, int rank) {
    List<Runs> held = new ArrayList<>();
    for (long extent : extents) {
      long[] part = shape.clone();
      part[dim] = extent;
      held.add(Runs.of(layout, part, rank));
    }
    return Runs.joined(held, dim, extents);
  }
}
