// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Describes how the tensors that a pattern matches are redistributed. Settings that a rule omits
 * come from the request.
 *
 * @param where the file and the rule's place in it, for messages
 * @param match the pattern of names
 * @param from the source layout as text, since its ranks depend on the default layout
 * @param to the target layout as text, for the same reason
 * @param dtype the dtype in which floating tensors are written
 * @param as the names under which the result is written; if empty, it keeps its own
 * @param transpose the order of the dimensions before the tensors are joined
 * @param form what becomes of the tensors, if each is not written as it is
 */
public record Rule(
    String where,
    NamePattern match,
    Optional<String> from,
    Optional<String> to,
    Optional<DType> dtype,
    List<String> as,
    Transpose transpose,
    Optional<Form> form) {

  /** Describes the new order of the dimensions. */
  public sealed interface Transpose {
    /** Keeps the dimensions as they are stored. */
    record None() implements Transpose {}

    /** Exchanges the last two dimensions. */
    record LastTwo() implements Transpose {}

    /** Writes the stored dimension {@code order[i]} as dimension i. */
    record Order(List<Integer> order) implements Transpose {}
  }

  /** Describes what becomes of tensors: they are joined, split, padded or left out. */
  public sealed interface Form {
    /**
     * Joins the tensors whose capture is in {@code names}, in that order, along an existing
     * dimension.
     *
     * @param to each part's target layout, if it is not the default
     * @param groups how often the parts repeat, interleaved; 1 if they lie one after another
     * @param unit the number of indices that belong together and are never cut
     */
    record Parts(
        List<String> names, List<Optional<String>> to, int dim, long groups, OptionalLong unit)
        implements Form {
      /**
       * Returns the indices of one part, in its own tensor and in the fused one.
       *
       * @param extents each part's extent, in all groups together
       */
      List<TensorMove.Segment> segments(int part, List<Long> extents) {
        long before = extents.stream().limit(part).mapToLong(Long::longValue).sum() / groups;
        long group = extents.stream().mapToLong(Long::longValue).sum() / groups;
        long piece = extents.get(part) / groups;
        return LongStream.range(0, groups)
            .mapToObj(g -> new TensorMove.Segment(g * piece, g * group + before, piece))
            .toList();
      }
    }

    /**
     * Joins all tensors in the order of the captured number, along a new dimension.
     *
     * @param uneven whether numbers may begin above 0, and stacks of one rule may have different
     *     numbers of tensors
     */
    record Stack(int dim, boolean uneven) implements Form {}

    /**
     * Cuts each part of a fused tensor separately.
     *
     * @param sizes each part's size in one group, in units
     * @param from each part's source layout; empty if the rule has none
     * @param isApart whether each part becomes a tensor of its own
     */
    record Split(Parts parts, List<Long> sizes, List<String> from, boolean isApart)
        implements Form {
      /** Returns each part's extent, in all groups together. */
      List<Long> extents() {
        long factor = Math.multiplyExact(parts.groups(), parts.unit().orElse(1));
        return sizes.stream().map(size -> Math.multiplyExact(size, factor)).toList();
      }
    }

    /**
     * Pads with zeros, along each dimension that a layout cuts.
     *
     * @param to extents become a multiple of this number
     * @param shape the tensor's own extents, if files hold padded ones
     */
    record Pad(long to, Optional<List<Long>> shape) implements Form {
      /** Returns the extents that {@code layout} cuts of a tensor of this shape. */
      public long[] padded(Layout layout, long[] shape) {
        long[] padded = shape.clone();
        for (Placement placement : layout.placements()) {
          int dim = Axes.dimension(placement);
          if (dim >= 0) {
            padded[dim] = (shape[dim] + to - 1) / to * to;
          }
        }
        return padded;
      }
    }

    /** Leaves the tensors out. */
    record Drop() implements Form {}
  }

  /** Returns whether the rule joins several tensors. */
  public boolean joins() {
    return form.filter(each -> each instanceof Form.Parts || each instanceof Form.Stack).isPresent();
  }

  /** Returns the parts of the fused tensor that the rule writes, if it writes one. */
  public Optional<Form.Parts> fuses() {
    return form.filter(Form.Parts.class::isInstance)
        .map(Form.Parts.class::cast)
        .or(() -> split().filter(split -> !split.isApart()).map(Form.Split::parts));
  }

  /** Returns how the rule splits tensors, if it does. */
  public Optional<Form.Split> split() {
    return form.filter(Form.Split.class::isInstance).map(Form.Split.class::cast);
  }

  /** Returns how the rule pads tensors, if it does. */
  public Optional<Form.Pad> pad() {
    return form.filter(Form.Pad.class::isInstance).map(Form.Pad.class::cast);
  }

  /** Returns whether the rule leaves its tensors out. */
  public boolean drops() {
    return form.filter(Form.Drop.class::isInstance).isPresent();
  }

  /**
   * Returns the layout of a text of this rule. Without {@code @}, it has the ranks of the default
   * layout {@code base}.
   *
   * @param key the rule's key for the text: {@code from} or {@code to}
   * @throws InvalidArgumentException if a rank would be above the limit
   */
  public Layout layout(String key, String text, Layout base) {
    Layout own = Layout.parse(text);
    try {
      return text.indexOf('@') < 0 ? lying(own, base) : own;
    } catch (InvalidArgumentException beyond) {
      throw new InvalidArgumentException(
          where + "." + key + ": " + text + ": " + beyond.getMessage(), beyond);
    }
  }

  /**
   * Moves a layout to the ranks of another one, in their order. If it has more ranks, they are
   * numbered from the first rank of the other layout on.
   */
  public static Layout lying(Layout layout, Layout base) {
    int size = layout.mesh().size();
    DeviceMesh on = base.mesh();
    DeviceMesh mesh =
        size > on.size()
            ? layout.mesh().at(on.rankAtPlace(0))
            : layout.mesh().ranks(IntStream.range(0, size).map(on::rankAtPlace).toArray());
    return new Layout(mesh, layout.placements());
  }

  /**
   * Checks that a layout of this rule cuts no dimension that a tensor lacks.
   *
   * @param tensor the tensor's name in IN
   * @param key the rule's key for the layout: {@code from} or {@code to}
   * @param ndim the tensor's number of dimensions
   */
  public void requireFit(String key, Layout layout, String tensor, int ndim) {
    for (int m = 0; m < layout.mesh().ndim(); m++) {
      Placement placement = layout.placements().get(m);
      int dim = Axes.dimension(placement);
      if (dim >= ndim) {
        throw new InvalidArgumentException(
            where + "." + key + ": " + placement + " cuts dimension " + dim + ", and tensor \""
                + tensor + "\" has " + (ndim == 1 ? "1 dimension" : ndim + " dimensions")
                + "; a rule for such tensors before this one gives them another layout, as \""
                + layout.mesh().size() + ":R\"");
      }
    }
  }

  /** Returns the captures of a name that the pattern matches. */
  public Optional<Map<String, String>> captures(String name) {
    return match.match(name)
        .filter(
            captured ->
                form.isEmpty()
                    || !(form.get() instanceof Form.Parts parts)
                    || parts.names().contains(captured.get(joined())));
  }

  /** Returns the capture in which joined tensors differ: the one that no new name holds. */
  public String joined() {
    Set<String> kept = new HashSet<>();
    as.forEach(name -> kept.addAll(NamePattern.capturesIn(name)));
    return match.captures().stream().filter(capture -> !kept.contains(capture)).findFirst().get();
  }
}
