// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.reshard.tensor.Moves;
import org.windlass.reshard.tensor.Rule;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Checks each module that has a tensor which a rule splits or pads. The outputs of a weight, of its
 * bias and of its LoRA factors belong together. So all these tensors must be split or padded in the
 * same way. If one of them is not, each rank must have all of its outputs.
 */
public final class Siblings {
  private static final Pattern OWN =
      Pattern.compile("(.*[._])(?:base_layer\\.)?(?:q?weight|bias|weight_packed)", Pattern.DOTALL);

  private Siblings() {}

  /**
   * Checks all moves.
   *
   * @throws InvalidArgumentException with a message that names two tensors of a module that are cut
   *     differently
   */
  public static void check(Moves moves) {
    if (moves.all().stream().map(moves::ruleOf).noneMatch(Siblings::changes)) {
      return;
    }
    moves
        .bySource()
        .forEach(
            (name, own) -> {
              Rule rule = moves.ruleOf(own.get(0));
              Matcher module = OWN.matcher(name);
              if (changes(rule) && module.matches()) {
                String begin = module.group(1);
                moves.bySource().subMap(begin, begin + Character.MAX_VALUE).values().stream()
                    .filter(others -> others != own)
                    .forEach(others -> check(own, others, rule));
              }
            });
  }

  private static void check(List<TensorMove> own, List<TensorMove> others, Rule rule) {
    SourceTensor tensor = own.get(0).source();
    SourceTensor other = others.get(0).source();
    for (int d = 0; d < tensor.shape().length; d++) {
      int dim = other.shape().length == 1 ? 0 : d;
      if (changes(own.get(0), rule, d)
          && Purpose.of(other.name()) != Purpose.SCALE
          && dim < other.shape().length
          && other.shape()[dim] == tensor.shape()[d]
          && !isAlike(own, d, others, dim)) {
        throw new InvalidArgumentException(
            "tensor \"" + other.name() + "\" " + Arrays.toString(other.shape())
                + " is of one module with \"" + tensor.name() + "\" "
                + Arrays.toString(tensor.shape()) + ", which " + rule.where()
                + (rule.splits() ? " splits" : " pads") + ", and is not cut alike along dimension "
                + dim + "; a rule with the same keys for it cuts both alike");
      }
    }
  }

  private static boolean changes(Rule rule) {
    return rule.splits() || rule.pad().isPresent();
  }

  private static boolean changes(TensorMove move, Rule rule, int dim) {
    int written = move.axes().stored().indexOf(dim);
    TargetTensor target = move.target();
    return rule.splits()
        ? rule.parts().get().dim() == written
        : target.division().padded().get(written) != target.shape()[written];
  }

  /** Returns whether each rank has the same indices of both dimensions, or all indices. */
  private static boolean isAlike(
      List<TensorMove> own, int dim, List<TensorMove> others, int otherDim) {
    boolean isAlike = own.size() == others.size();
    for (int i = 0; i < own.size() && isAlike; i++) {
      TargetTensor target = own.get(i).target();
      TargetTensor other = others.get(i).target();
      int written = own.get(i).axes().stored().indexOf(dim);
      int otherWritten = others.get(i).axes().stored().indexOf(otherDim);
      isAlike = own.get(i).segments(written).equals(others.get(i).segments(otherWritten));
      for (int rank : other.to().mesh().ranks()) {
        Runs held = other.held(rank);
        isAlike &=
            held.shape()[otherWritten] == other.shape()[otherWritten]
                || target.to().mesh().contains(rank)
                    && held.dims().get(otherWritten).equals(target.held(rank).dims().get(written));
      }
    }
    return isAlike;
  }
}
