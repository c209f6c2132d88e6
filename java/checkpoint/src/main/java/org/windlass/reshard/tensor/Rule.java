// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
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
 * Describes how the tensors that a pattern matches are redistributed. If a rule omits a setting,
 * the request's setting applies.
 *
 * @param where the file and the rule's place in it, for messages
 * @param match the pattern of names
 * @param from the source layout as text, since its ranks depend on the default layout
 * @param to the target layout as text, for the same reason
 * @param dtype the dtype in which floating tensors are written
 * @param as the names under which the result is written; if empty, the tensor keeps its name
 * @param transpose the order of the dimensions before the tensors are joined
 * @param form the change to the tensors; empty if each tensor is written unchanged
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
  /** The rule for tensors that no rule in the file matches. It changes nothing. */
  public static final Rule NONE =
      new Rule(
          "",
          NamePattern.parse("*"),
          Optional.empty(),
          Optional.empty(),
          Optional.empty(),
          List.of(),
          new Transpose.None(),
          Optional.empty());


  /** Describes the new order of the dimensions. */
  public sealed interface Transpose {
    /** Keeps the dimensions as they are stored. */
    record None() implements Transpose {}

    /** Exchanges the last two dimensions. */
    record LastTwo() implements Transpose {}

    /** Writes the stored dimension {@code order[i]} as dimension i. */
    record Order(List<Integer> order) implements Transpose {}
  }

  /** Describes a change to tensors: they are joined, split, padded or left out. */
  public sealed interface Form {
    /**
     * Cuts the parts of a fused tensor separately. It joins the tensors whose capture is in {@code
     * names}, in that order, along an existing dimension, or splits one tensor.
     *
     * @param dim the dimension along which the parts lie, as written
     * @param names the captures of the joined tensors, or names of the parts of a split one
     * @param sizes the size of each part in one group, in units; empty if tensors are joined
     * @param from each part's source layout, if the rule gives one
     * @param to each part's target layout, if it is not the default
     * @param groups number of groups. Each group has a piece of every part; 1 if the parts lie one
     *     after another
     * @param unit the number of indices that belong together; a cut never separates them
     * @param isApart whether each part becomes a tensor of its own
     */
    record Parts(
        int dim,
        List<String> names,
        List<Long> sizes,
        List<Optional<String>> from,
        List<Optional<String>> to,
        long groups,
        OptionalLong unit,
        boolean isApart)
        implements Form {
      /**
       * Returns true if the parts are split from one tensor, and false if they are joined from
       * several.
       */
      public boolean splits() {
        return !sizes.isEmpty();
      }

      /** Returns each part's extent in all groups together, if one tensor is split. */
      List<Long> extents() {
        long factor = Math.multiplyExact(groups, unit.orElse(1));
        return sizes.stream().map(size -> Math.multiplyExact(size, factor)).toList();
      }

      /**
       * Returns the indices of one part, both in the tensor that is read and in the written tensor.
       *
       * @param part the part's index
       * @param extents each part's extent, in all groups together
       */
      List<TensorMove.Segment> segments(int part, List<Long> extents) {
        long before = extents.stream().limit(part).mapToLong(Long::longValue).sum() / groups;
        long group = extents.stream().mapToLong(Long::longValue).sum() / groups;
        long piece = extents.get(part) / groups;
        return LongStream.range(0, groups)
            .mapToObj(
                g ->
                    isApart
                        ? new TensorMove.Segment(g * group + before, g * piece, piece)
                        : new TensorMove.Segment(g * piece, g * group + before, piece))
            .toList();
      }
    }

    /**
     * Joins all tensors in the order of the captured number, along a new dimension.
     *
     * @param dim the index of the new dimension, as written
     * @param uneven whether numbers may begin above 0, and stacks of one rule may have different
     *     numbers of tensors
     */
    record Stack(int dim, boolean uneven) implements Form {}

    /**
     * Appends zeros along each dimension that a layout cuts.
     *
     * @param to extents become a multiple of this number
     * @param shape the tensor's extents without padding, if the files of IN hold padded extents
     */
    record Pad(long to, Optional<List<Long>> shape) implements Form {
      /** Returns the extents that {@code layout} cuts of a tensor of this shape. */
      public List<Long> padded(Layout layout, List<Long> shape) {
        List<Long> padded = new ArrayList<>(shape);
        for (Placement placement : layout.placements()) {
          int dim = Axes.dimension(placement);
          if (dim >= 0 && dim < shape.size()) {
            padded.set(dim, (shape.get(dim) + to - 1) / to * to);
          }
        }
        return padded;
      }
    }

    /** Leaves the tensors out. */
    record Drop() implements Form {}
  }

  private <T extends Form> Optional<T> form(Class<T> kind) {
    return form.filter(kind::isInstance).map(kind::cast);
  }

  /** Returns whether the rule is in the file, which means that the user has named the tensor. */
  public boolean isGiven() {
    return this != NONE;
  }

  /** Returns whether the rule joins several tensors. */
  public boolean joins() {
    return stack().isPresent() || parts().isPresent() && !splits();
  }

  /** Returns how the rule stacks tensors, if it does. */
  public Optional<Form.Stack> stack() {
    return form(Form.Stack.class);
  }

  /** Returns whether the rule splits tensors. */
  public boolean splits() {
    return parts().filter(Form.Parts::splits).isPresent();
  }

  /** Returns the parts that the rule joins, or into which it splits tensors. */
  public Optional<Form.Parts> parts() {
    return form(Form.Parts.class);
  }

  /** Returns how the rule pads tensors, if it does. */
  public Optional<Form.Pad> pad() {
    return form(Form.Pad.class);
  }

  /** Returns whether the rule leaves its tensors out. */
  public boolean drops() {
    return form(Form.Drop.class).isPresent();
  }

  /**
   * Parses a layout of this rule. Without {@code @}, the layout has the ranks of the default layout
   * {@code base}.
   *
   * @param key the rule's key for the text: {@code from} or {@code to}
   * @throws InvalidArgumentException if the text is not a layout, or a rank would be above the
   *     limit
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
   * Returns a layout on the ranks of {@code base}, in their order. If the layout has more ranks
   * than {@code base}, they are consecutive numbers from the first rank of {@code base}.
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
   * @param key the rule's key for the layout: {@code from} or {@code to}
   * @throws InvalidArgumentException if the layout cuts such a dimension
   */
  public void requireFit(String key, Layout layout, String tensor, int ndim) {
    for (Placement placement : layout.placements()) {
      int dim = Axes.dimension(placement);
      if (dim >= ndim) {
        throw new InvalidArgumentException(
            where + "." + key + ": " + placement + " cuts dimension " + dim + ", and tensor \""
                + tensor + "\" has " + (ndim == 1 ? "1 dimension" : ndim + " dimensions")
                + "; before this one, add a rule for such tensors that gives them another layout,"
                + " such as \""
                + layout.mesh().size() + ":R\"");
      }
    }
  }

  /**
   * Returns the captured texts of a name, keyed by capture. Empty if the rule does not apply to the
   * name.
   */
  public Optional<Map<String, String>> captures(String name) {
    return match.match(name)
        .filter(
            captured ->
                parts().isEmpty()
                    || splits()
                    || parts().get().names().contains(captured.get(joined())));
  }

  /**
   * Returns the capture in which joined tensors differ. It is the capture that no new name
   * contains.
   */
  public String joined() {
    Set<String> kept = new HashSet<>();
    as.forEach(name -> kept.addAll(NamePattern.capturesIn(name)));
    return match.captures().stream().filter(capture -> !kept.contains(capture)).findFirst().get();
  }
}
