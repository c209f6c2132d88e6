// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.IntStream;
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
 * @param join how several tensors become one
 */
public record Rule(
    String where,
    NamePattern match,
    Optional<String> from,
    Optional<String> to,
    Optional<DType> dtype,
    List<String> as,
    Transpose transpose,
    Optional<Join> join) {

  /** Describes the new order of the dimensions. */
  public sealed interface Transpose {
    /** Keeps the dimensions as they are stored. */
    record None() implements Transpose {}

    /** Exchanges the last two dimensions. */
    record LastTwo() implements Transpose {}

    /** Writes the stored dimension {@code order[i]} as dimension i. */
    record Order(List<Integer> order) implements Transpose {}
  }

  /** Describes how the tensors that differ only in one capture become one tensor. */
  public sealed interface Join {
    /** Returns the dimension along which the tensors lie one after another. */
    int dim();

    /**
     * Joins the tensors whose capture is in {@code names}, in that order, along an existing
     * dimension.
     *
     * @param unit the number of indices that belong together and are never cut
     */
    record Parts(List<String> names, int dim, OptionalLong unit) implements Join {}

    /**
     * Joins all tensors in the order of the captured number, along a new dimension.
     *
     * @param uneven whether numbers may begin above 0, and stacks of one rule may have different
     *     numbers of tensors
     */
    record Stack(int dim, boolean uneven) implements Join {}
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
                join.isEmpty()
                    || !(join.get() instanceof Join.Parts parts)
                    || parts.names().contains(captured.get(joined())));
  }

  /** Returns the capture in which joined tensors differ: the one that no new name holds. */
  public String joined() {
    Set<String> kept = new HashSet<>();
    as.forEach(name -> kept.addAll(NamePattern.capturesIn(name)));
    return match.captures().stream().filter(capture -> !kept.contains(capture)).findFirst().get();
  }
}
