// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.reshard.tensor.Rule;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Checks the tensors of a module of which a rule splits or pads one. The outputs of a weight, of its
 * bias and of its LoRA factors belong together, so all are split or padded alike, or a rank has all
 * of them.
 */
public final class Siblings {
  private static final Pattern OWN =
      Pattern.compile("(.*[._])(?:base_layer\\.)?(?:q?weight|bias|weight_packed)", Pattern.DOTALL);

  private final NavigableMap<String, List<TensorMove>> moves = new TreeMap<>();
  private final boolean writesWhole;

  private Siblings(List<TensorMove> moves, boolean writesWhole) {
    this.writesWhole = writesWhole;
    for (TensorMove move : moves) {
      this.moves.computeIfAbsent(move.source().name(), key -> new ArrayList<>()).add(move);
    }
  }

  /**
   * Checks all moves.
   *
   * @param ruleOf returns the rule that a tensor of IN has, if any
   * @throws InvalidArgumentException naming a tensor that is cut otherwise than another one of its
   *     module
   */
  public static void check(
      List<TensorMove> moves, Function<String, Optional<Rule>> ruleOf, boolean writesWhole) {
    Siblings all = new Siblings(moves, writesWhole);
    for (String name : all.moves.keySet()) {
      ruleOf
          .apply(name)
          .filter(rule -> rule.split().isPresent() || rule.pad().isPresent())
          .ifPresent(rule -> all.check(name, rule));
    }
  }

  private void check(String name, Rule rule) {
    SourceTensor tensor = Objects.requireNonNull(moves.get(name)).get(0).source();
    Matcher own = OWN.matcher(name);
    if (!own.matches()) {
      return;
    }
    String module = own.group(1);
    for (List<TensorMove> others : moves.tailMap(module, false).values()) {
      SourceTensor other = others.get(0).source();
      if (!other.name().startsWith(module)) {
        return;
      }
      for (int d = 0; d < tensor.shape().length; d++) {
        int dim = other.shape().length == 1 ? 0 : d;
        if (changes(moves.get(name).get(0), rule, d)
            && !other.name().equals(name)
            && Purpose.of(other.name()) != Purpose.SCALE
            && dim < other.shape().length
            && other.shape()[dim] == tensor.shape()[d]
            && !isAlike(moves.get(name), d, others, dim)) {
          throw new InvalidArgumentException(
              "tensor \"" + other.name() + "\" " + Arrays.toString(other.shape())
                  + " is of one module with \"" + name + "\" " + Arrays.toString(tensor.shape())
                  + ", which " + rule.where() + (rule.split().isPresent() ? " splits" : " pads")
                  + ", and is not cut alike along dimension " + dim
                  + "; a rule with the same keys for it cuts both alike");
        }
      }
    }
  }

  /** Returns whether a rule splits or pads a stored dimension. */
  private static boolean changes(TensorMove move, Rule rule, int dim) {
    int written = move.axes().stored().indexOf(dim);
    TargetTensor target = move.target();
    return rule.split().isPresent()
        ? rule.split().get().parts().dim() == written
        : target.division().padded().get(written) != target.shape()[written];
  }

  /** Returns whether ranks have the same indices of a dimension of two tensors, or all of them. */
  private boolean isAlike(List<TensorMove> own, int dim, List<TensorMove> others, int otherDim) {
    boolean isAlike = own.size() == others.size();
    for (int i = 0; i < own.size() && isAlike; i++) {
      int written = own.get(i).axes().stored().indexOf(dim);
      int otherWritten = others.get(i).axes().stored().indexOf(otherDim);
      isAlike = own.get(i).segments(written).equals(others.get(i).segments(otherWritten));
      if (isAlike && !writesWhole) {
        Map<Integer, List<Runs.Run>> held = held(own.get(i).target(), written);
        TargetTensor other = others.get(i).target();
        List<Runs.Run> all = Runs.whole(other.shape()).dims().get(otherWritten);
        isAlike =
            held(other, otherWritten).entrySet().stream()
                .allMatch(
                    each ->
                        each.getValue().equals(all)
                            || each.getValue().equals(held.get(each.getKey())));
      }
    }
    return isAlike;
  }

  /** Returns the runs of a dimension in each file. */
  private static Map<Integer, List<Runs.Run>> held(TargetTensor tensor, int dim) {
    Map<Integer, List<Runs.Run>> held = new HashMap<>();
    for (int rank : tensor.to().mesh().ranks()) {
      held.put(tensor.fileOf(rank), tensor.held(rank).dims().get(dim));
    }
    return held;
  }
}
