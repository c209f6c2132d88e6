// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import org.windlass.DType;
import org.windlass.layout.Layout;

/**
 * A rule: what becomes of the tensors that a pattern matches. What it leaves out comes from the
 * request.
 *
 * @param where the file and the rule's place in it, for messages
 * @param match the names that it is for
 * @param from the source layout
 * @param to the target layout, as text: which ranks it means depends on the sources
 * @param dtype the dtype in which floating tensors are written
 * @param as the names under which the result is written; without any, it keeps its own
 * @param transpose the order of the dimensions before anything is joined
 * @param join how several tensors become one
 */
record Rule(
    String where,
    NamePattern match,
    Optional<Layout> from,
    Optional<String> to,
    Optional<DType> dtype,
    List<String> as,
    Transpose transpose,
    Optional<Join> join) {

  /** The order that dimensions get. */
  sealed interface Transpose {
    /** As they are stored. */
    record None() implements Transpose {}

    /** The last two exchanged. */
    record LastTwo() implements Transpose {}

    /** Dimension i is what was stored as dimension {@code order[i]}. */
    record Order(List<Integer> order) implements Transpose {}
  }

  /** How the tensors that differ in one capture alone become one tensor. */
  sealed interface Join {
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
     * @param uneven whether numbers may begin above 0, and stacks of one rule differ in how many they hold
     */
    record Stack(int dim, boolean uneven) implements Join {}
  }

  /** The captures of a name that this rule is for. */
  Optional<Map<String, String>> captures(String name) {
    return match.match(name)
        .filter(
            captured ->
                join.isEmpty()
                    || !(join.get() instanceof Join.Parts parts)
                    || parts.names().contains(captured.get(joined())));
  }

  /** The capture in which joined tensors differ: the one that no new name holds. */
  String joined() {
    Set<String> kept = new HashSet<>();
    as.forEach(name -> kept.addAll(NamePattern.capturesIn(name)));
    return match.captures().stream().filter(capture -> !kept.contains(capture)).findFirst().get();
  }
}
