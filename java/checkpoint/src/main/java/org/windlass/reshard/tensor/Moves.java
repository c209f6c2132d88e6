// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * Finds the moves of a request by the names of their tensors. The first search sorts the moves. A
 * request that needs no search thus needs no memory for this.
 */
public final class Moves {
  private final List<TensorMove> all;
  private final Function<String, Rule> ruleOf;
  private final NavigableMap<String, List<TensorMove>> bySource = new TreeMap<>();
  private final Map<String, List<TensorMove>> byTarget = new HashMap<>();

  /** Keeps the moves. {@code ruleOf} returns the rule of a source tensor. */
  public Moves(List<TensorMove> all, Function<String, Rule> ruleOf) {
    this.all = all;
    this.ruleOf = ruleOf;
  }

  private void sort() {
    if (bySource.isEmpty()) {
      for (TensorMove move : all) {
        bySource.computeIfAbsent(move.source().name(), key -> new ArrayList<>()).add(move);
        byTarget.computeIfAbsent(move.target().name(), key -> new ArrayList<>()).add(move);
      }
    }
  }

  /** Returns all moves, in the order of the request. */
  public List<TensorMove> all() {
    return all;
  }

  /** Returns the rule of a move's source tensor. */
  public Rule ruleOf(TensorMove move) {
    return ruleOf.apply(move.source().name());
  }

  /** Returns the moves of each source tensor, sorted by the tensor's name. */
  public NavigableMap<String, List<TensorMove>> bySource() {
    sort();
    return bySource;
  }

  /**
   * Returns the moves of a source tensor. There are several if it is split or has several names.
   */
  public List<TensorMove> of(SourceTensor source) {
    return Objects.requireNonNull(bySource().get(source.name()));
  }

  /** Returns the moves that fill a target. There are several if a rule joins tensors. */
  public List<TensorMove> into(TargetTensor target) {
    sort();
    return Objects.requireNonNull(byTarget.get(target.name()));
  }
}
