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
 * A rule: what becomes of the tensors that a pattern matches. What it leaves out comes from the
 * request.
 *
 * @param where the file and the rule's place in it, for messages
 * @param match the names that it is for
 * @param from the source layout, as text: which ranks it means depends on the default one
 * @param to the target layout, as text for the same reason
 * @param dtype the dtype in which floating tensors are written
 * @param as the names under which the result is written; without any, it keeps its own
 * @param transpose the order of the dimensions before anything is joined
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

  /** The order that dimensions get. */
  public sealed interface Transpose {
    /** As they are stored. */
    record None() implements Transpose {}

    /** The last two exchanged. */
    record LastTwo() implements Transpose {}

    /** Dimension i is what was stored as dimension {@code order[i]}. */
    record Order(List<Integer> order) implements Transpose {}
  }

  /** How the tensors that differ in one capture alone become one tensor. */
  public sealed interface Join {
    /** The dimension along which they lie one after another. */
    int dim();

    /**
     * Those whose capture is one of {@code names}, in that order, along an existing dimension.
     *
     * @param unit how many indices of it belong together, of which no rank gets a part
     */
    record Parts(List<String> names, int dim, OptionalLong unit) implements Join {}

    /**
     * All of them by the number that is captured, along a new dimension.
     *
     * @param uneven whether numbers may begin above 0, and stacks of one rule differ in how many
     *     they hold
     */
    record Stack(int dim, boolean uneven) implements Join {}
  }

  /**
   * The layout of a text of this rule. Without {@code @} it lies where {@code base}, the default
   * layout, does.
   *
   * @param key where the rule has the text: {@code from} or {@code to}
   * @throws InvalidArgumentException if it lies beyond the last rank that can be
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

  /** A layout on another's ranks, in their order; from its first rank on, if it has more ranks. */
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
   * @param tensor its name in IN
   * @param key where the rule has the layout: {@code from} or {@code to}
   * @param ndim how many dimensions there are
   */
  public void requireFit(String key, Layout layout, String tensor, int ndim) {
    for (int m = 0; m < layout.mesh().ndim(); m++) {
      Placement placement = layout.placements().get(m);
      int dim = Leg.dimension(placement);
      if (dim >= ndim) {
        throw new InvalidArgumentException(
            where + "." + key + ": " + placement + " cuts dimension " + dim + ", and tensor \""
                + tensor + "\" has " + (ndim == 1 ? "1 dimension" : ndim + " dimensions")
                + "; a rule for such tensors before this one gives them another layout, as \""
                + layout.mesh().size() + ":R\"");
      }
    }
  }

  /** The captures of a name that this rule is for. */
  public Optional<Map<String, String>> captures(String name) {
    return match.match(name)
        .filter(
            captured ->
                join.isEmpty()
                    || !(join.get() instanceof Join.Parts parts)
                    || parts.names().contains(captured.get(joined())));
  }

  /** The capture in which joined tensors differ: the one that no new name holds. */
  public String joined() {
    Set<String> kept = new HashSet<>();
    as.forEach(name -> kept.addAll(NamePattern.capturesIn(name)));
    return match.captures().stream().filter(capture -> !kept.contains(capture)).findFirst().get();
  }
}
