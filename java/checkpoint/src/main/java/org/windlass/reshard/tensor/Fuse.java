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
 * Describes the cut of a target that a rule fuses of parts. Each part is cut separately, so a rank
 * holds its piece of every part, one after another.
 *
 * @param dim the dimension along which the parts lie
 * @param extents each part's extent of that dimension
 * @param layout the layout that cuts each part evenly
 * @param pieces the number of pieces into which it cuts {@code dim}
 */
public record Fuse(int dim, List<Long> extents, Layout layout, int pieces) {
  /**
   * Returns how {@code to} cuts the parts, or empty if it does not cut them along {@code dim}.
   *
   * @param where the rule and the layout, which begin every complaint
   * @throws InvalidArgumentException if the pieces of a part would differ, or {@code to} cuts the
   *     joined tensor instead of the parts
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
   * Refuses a layout with both plain and strided cuts of one dimension. A plain cut applies to each
   * part, and a strided one to the joined tensor.
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
   * Returns the description of the cut for {@code layout.json}. It is present only if the parts are
   * cut and differ in extent, since no layout of the whole describes that.
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
   * Returns the layout by which ranks hold the tensor. If all parts are equal, it is the strided
   * layout of their concatenation. Otherwise it gives only the ranks' shapes, and {@link #runs}
   * gives their content.
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

  /** Returns a rank's part of the concatenation of the parts. */
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
