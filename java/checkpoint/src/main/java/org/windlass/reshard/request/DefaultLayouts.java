// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.check.Doubts;
import org.windlass.reshard.tensor.Axes;
import org.windlass.reshard.tensor.Rule;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.SourceTensors;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.reshard.tensor.TiedNames;

/**
 * Checks a request's default layouts, which apply to tensors without a layout of their own.
 *
 * @param ruleOf returns the rule that applies to a tensor
 * @param warnings receives warnings about layouts that are seldom intended
 */
record DefaultLayouts(
    Checkpoint in,
    ReshardRequest request,
    TiedNames tied,
    Function<String, Rule> ruleOf,
    Consumer<String> warnings) {
  /**
   * Describes a tensor that is read or written.
   *
   * @param takesDefault whether the default layout applies to it
   */
  private record Seen(String name, int ndim, Layout layout, boolean takesDefault) {
    boolean isCut(int dim) {
      return layout.placements().stream().anyMatch(each -> Axes.dimension(each) == dim);
    }
  }

  /** Throws if a default layout shards a dimension that no tensor has. */
  void check(SourceTensors sources, List<SourceTensor> tensors, List<TensorMove> moves) {
    Supplier<Stream<Seen>> read =
        () ->
            tensors.stream()
                .map(
                    tensor ->
                        new Seen(
                            tensor.name(),
                            tensor.shape().length,
                            tensor.from(),
                            sources.takesDefault(tensor.stored())));
    request.from.ifPresent(from -> checkDefault("from() " + from, from, read));
    Supplier<Stream<Seen>> written =
        () ->
            IntStream.range(0, moves.size())
                .filter(i -> i == 0 || moves.get(i).target() != moves.get(i - 1).target())
                .mapToObj(moves::get)
                .map(
                    move ->
                        new Seen(
                            move.target().name(),
                            move.target().shape().length,
                            move.target().to(),
                            ruleOf.apply(move.source().name()).to().isEmpty()));
    request.to.ifPresent(to -> checkDefault("to() " + to, Layout.parse(to), written));
  }

  /**
   * Checks one default layout.
   *
   * @param which the default layout as the user wrote it
   * @param tensors returns the tensors, one after another, so that they take no memory
   */
  private void checkDefault(String which, Layout layout, Supplier<Stream<Seen>> tensors) {
    int most = tensors.get().mapToInt(Seen::ndim).max().orElse(0);
    long all = tensors.get().filter(Seen::takesDefault).count();
    for (Placement placement : layout.placements()) {
      int dim = Axes.dimension(placement);
      List<String> without =
          tensors
              .get()
              .filter(tensor -> tensor.takesDefault() && tensor.ndim() <= dim)
              .map(Seen::name)
              .toList();
      long with = all - without.size();
      String lack = which + ": dimension " + dim + ", which " + placement + " cuts, ";
      if (most <= dim && !without.isEmpty()) {
        throw new InvalidArgumentException(
            lack + "is one that no tensor has: tensors have " + most
                + " at most; correct it, or take R");
      }
      if (with < without.size()
          && (with > 0 || tensors.get().noneMatch(tensor -> tensor.isCut(dim)))) {
        warnings.accept(
            lack + "is one that " + (with == 0 ? "none" : with) + " of " + all
                + " tensors have; each rank gets all of " + Doubts.listed(without));
      }
    }
  }

  /**
   * Throws if the request lacks a layout that IN requires, or has a layout that is not allowed for
   * IN.
   */
  void checkRequest() {
    if (request.to.isEmpty() && (request.rules.isEmpty() || in.names().isEmpty())) {
      throw new InvalidArgumentException("to() is missing; reshard takes a target layout");
    }
    if (in.names().isEmpty() && request.from.isEmpty()) {
      throw new InvalidArgumentException("from() is missing; " + in.path() + " has no tensors");
    }
    if (request.to.isPresent()) {
      try {
        TargetTensor.refusePartial(Layout.parse(request.to.get()));
      } catch (InvalidArgumentException refused) {
        throw new InvalidArgumentException("to() " + refused.getMessage(), refused);
      }
    }
    if (!in.byRank() && request.from.filter(Layout::hasPartial).isPresent()) {
      throw new InvalidArgumentException(
          "from() " + request.from.get() + ": holds P, and " + in.path()
              + " holds whole tensors; use R in place of P");
    }
  }

  void checkCovered(SourceTensors sources) {
    refuseUncovered(
        tied.tensors().stream().filter(name -> sources.declared(tied.stored(name)).isEmpty()),
        "source",
        "no layout.json or rule gives one, and from() is missing");
    refuseUncovered(
        tied.tensors().stream()
            .filter(name -> request.to.isEmpty() && ruleOf.apply(name).to().isEmpty()),
        "target",
        "no rule gives one, and to() is missing");
  }

  private static void refuseUncovered(Stream<String> uncovered, String which, String why) {
    List<String> names = uncovered.toList();
    if (!names.isEmpty()) {
      throw new InvalidArgumentException(
          Doubts.listed(names) + (names.size() == 1 ? " has" : " have") + " no " + which + " layout; "
              + why);
    }
  }
}
