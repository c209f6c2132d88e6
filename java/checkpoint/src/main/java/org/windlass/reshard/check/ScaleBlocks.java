// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.reshard.tensor.Axes;
import org.windlass.reshard.tensor.Moves;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Checks that quantized tensors are cut and joined in the same way as their scales. Each scale
 * belongs to a block of elements. So tensors must be cut and joined at block boundaries, and each
 * rank that holds a block must hold the scale of that block.
 */
public final class ScaleBlocks {
  private final Moves moves;
  private final Map<String, String> weightOf = new HashMap<>();
  /**
   * For each packed weight, its number of inputs, which is the length of its g_idx. Keyed by name.
   */
  private final Map<String, Long> inputs = new HashMap<>();
  private final Set<List<Object>> checked = new HashSet<>();
  private final boolean byRank;
  private final Remedy remedy;
  /** Most common block size, in elements. 0 if every tensor has a single block. */
  private final long usual;

  private ScaleBlocks(List<Scales.Pair> pairs, Moves moves, boolean byRank, Remedy remedy) {
    this.moves = moves;
    this.remedy = remedy;
    this.byRank = byRank;
    Map<Long, Integer> blocks = new LinkedHashMap<>();
    for (Scales.Pair pair : pairs) {
      if (GroupNumbers.isName(pair.scale().name()) && pair.scale().shape().length == 1) {
        inputs.put(pair.weight().name(), pair.scale().shape()[0]);
      }
    }
    for (Scales.Pair pair : pairs) {
      weightOf.put(pair.scale().name(), pair.weight().name());
      for (Along along : along(pair, 0).orElse(List.of())) {
        if (along.block() > 1 && along.count() == 1 && pair.scale().shape()[along.scale()] > 1) {
          blocks.merge(along.block(), 1, Integer::sum);
        }
      }
    }
    usual =
        blocks.entrySet().stream()
            .max(Comparator.comparingInt(Map.Entry::getValue))
            .map(Map.Entry::getKey)
            .orElse(0L);
  }

  /**
   * Checks all weights and their scales.
   *
   * @param byRank whether the source layouts cut the stored tensors
   * @param remedy names rules that would work
   * @throws InvalidArgumentException with a message that names a weight, its scales, the block and
   *     a rule that works
   */
  public static void check(
      Scales scales, Moves moves, boolean byRank, Remedy remedy) {
    List<Scales.Pair> pairs = scales.pairs();
    List<SourceTensor> alone = scales.alone();
    if (!pairs.isEmpty() || !alone.isEmpty()) {
      scales.checkNotPadded(moves);
      ScaleBlocks blocks = new ScaleBlocks(pairs, moves, byRank, remedy);
      pairs.forEach(blocks::check);
      alone.forEach(scale -> blocks.checkAlone(scales.hold(scale), scale));
    }
  }

  /** Throws if a scale without a unique weight is cut, unless it is an ordinary tensor. */
  private void checkAlone(boolean isOfWeights, SourceTensor scale) {
    if (isOfWeights || TargetTensor.elements(scale.shape()) == 1) {
      moves.of(scale).forEach(move -> checkWhole(move.target(), move.target()));
    }
  }

  /** Throws unless each file that has a piece of {@code weight} has the whole {@code scale}. */
  private void checkWhole(TargetTensor scale, TargetTensor weight) {
    if (IntStream.range(0, scale.shape().length).anyMatch(scale::isCut)) {
      throw new InvalidArgumentException(
          "tensor \"" + scale.name() + "\" " + Arrays.toString(scale.shape())
              + " belongs to a whole weight, by its name, but " + scale.division() + " cuts it; "
              + remedy.whole(scale, weight) + " keeps it whole");
    }
  }

  private void check(Scales.Pair pair) {
    List<TensorMove> scales = moves.of(pair.scale());
    for (TensorMove weight : moves.of(pair.weight())) {
      String module = Scales.module(weight.target().name());
      TensorMove scale =
          scales.stream()
              .filter(move -> Scales.module(move.target().name()).equals(module))
              .findFirst()
              .orElse(scales.get(0));
      check(pair, weight, scale);
    }
  }

  private void check(Scales.Pair pair, TensorMove weight, TensorMove scale) {
    boolean isIndex = GroupNumbers.isName(pair.scale().name());
    boolean isShape = GroupNumbers.isShape(pair.scale().name());
    // If weights become parts of a joined weight, their group numbers and shapes are not joined.
    boolean isApart = (isIndex || isShape) && isJoined(weight) && !isStacked(weight);
    if (!isApart) {
      checkJoined(weight, scale);
      checkNames(pair);
    } else if (isShape && isJoined(scale)) {
      throw new InvalidArgumentException(
          "tensor \"" + pair.scale().name() + "\" gives the shape of \"" + pair.weight().name()
              + "\", but a rule joins it with others; leave each apart");
    }
    if (byRank) {
      Scales.checkNotJoinedOfOnes(pair);
    }
    Optional<List<Along>> lies = isApart || isShape ? Optional.empty() : along(pair, usual);
    if (lies.isEmpty()) {
      boolean isSplitOff = weight.isPart() && !isJoined(weight) && !scale.isPart();
      if (isSplitOff && !isShape && !Purpose.isOfInputs(pair.scale().name())) {
        throw new InvalidArgumentException(
            "tensor \"" + pair.weight().name() + "\" is split, and its scales, \""
                + pair.scale().name() + "\" " + Arrays.toString(pair.scale().shape())
                + ", do not lie along it; add a rule that splits them into the same number of"
                + " parts, or call ignoreScales() to leave them unchanged");
      }
      if (!isJoined(scale)) {
        checkWhole(scale.target(), weight.target());
      }
      checkThere(weight.target(), scale.target());
      return;
    }
    List<Along> along = lies.get();
    SourceTensor from = weight.source();
    SourceTensor own = scale.source();
    if (byRank
        && !isIndex
        && isNew("IN", from.division(), from.shapeList(), own.division(), own.shapeList(), along)) {
      checkStored(pair, along);
    }
    List<Along> written = written(along, weight.axes().stored(), scale.axes().stored());
    checkOrder(weight, scale, written);
    for (Along each : written) {
      checkJoint(weight, scale, each);
    }
    TargetTensor to = weight.target();
    TargetTensor its = scale.target();
    if (isNew("OUT", to.division(), to.shapeList(), its.division(), its.shapeList(), written)) {
      checkThere(to, its);
      to.to().mesh().ranks().forEach(rank -> checkHeld(to, its, rank, written));
    }
  }

  /** Returns whether these facts were not checked before. A model has few different ones. */
  private boolean isNew(Object... facts) {
    return checked.add(List.of(facts));
  }

  /**
   * Converts dimensions of the stored tensors to dimensions of the written ones. For each written
   * dimension, {@code weight} and {@code scale} list the stored dimension.
   */
  private static List<Along> written(List<Along> along, List<Integer> weight, List<Integer> scale) {
    List<Along> written = new ArrayList<>();
    for (Along each : along) {
      written.add(each.at(weight.indexOf(each.weight()), scale.indexOf(each.scale())));
    }
    if (weight.contains(Axes.NEW) && scale.contains(Axes.NEW)) {
      written.add(new Along(weight.indexOf(Axes.NEW), scale.indexOf(Axes.NEW), 1, 1, true));
    }
    return written;
  }

  /** Throws unless every file with a piece of the weight also has some of its scales. */
  private void checkThere(TargetTensor weight, TargetTensor scale) {
    for (int rank : weight.to().mesh().ranks()) {
      if (!scale.to().mesh().contains(rank)
          && !isEmpty(weight.held(rank))) {
        throw new InvalidArgumentException(
            them(weight, scale) + Checkpoint.rankFile(rank)
                + " would have a piece of the weight, by " + weight.division() + ", and none of the scales, by " + scale.division() + "; "
                + remedy.whole(scale, weight) + " gives them to all files");
      }
    }
  }

  private static boolean isEmpty(Runs held) {
    return Arrays.stream(held.shape()).anyMatch(extent -> extent == 0);
  }

  private static boolean isStacked(TensorMove move) {
    return move.axes().stored().get(move.dim()) == Axes.NEW;
  }

  /** Returns the names of the tensors that a rule joins with the tensor of {@code move}. */
  private List<String> parts(TensorMove move) {
    return moves.into(move.target()).stream().map(part -> part.source().name()).toList();
  }

  private List<String> written(SourceTensor tensor) {
    return moves.of(tensor).stream().map(move -> move.target().name()).toList();
  }

  private boolean isJoined(TensorMove move) {
    return parts(move).size() > 1;
  }

  /** Throws if a weight and its scales are in one module in IN, but in different modules in OUT. */
  private void checkNames(Scales.Pair pair) {
    if (!Scales.module(pair.weight().name()).equals(Scales.module(pair.scale().name()))) {
      return;
    }
    List<String> scales = written(pair.scale()).stream().map(Scales::module).toList();
    for (String name : written(pair.weight())) {
      if (!scales.contains(Scales.module(name))) {
        throw new InvalidArgumentException(
            "tensor \"" + pair.weight().name() + "\" is written as \"" + name + "\", and its scales, \""
                + pair.scale().name() + "\", as \"" + written(pair.scale()).get(0)
                + "\", which are not of one module; rename both in the same way, or call"
                + " ignoreScales() to leave them unchanged");
      }
    }
  }

  private void checkJoined(TensorMove weight, TensorMove scale) {
    List<String> weights = parts(weight);
    List<String> scales = parts(scale);
    List<String> expected = scales.stream().map(name -> weightOf.getOrDefault(name, "")).toList();
    if (!expected.equals(weights)) {
      throw new InvalidArgumentException(
          "tensor \"" + weight.source().name() + "\" is written as " + part(weights, weight)
              + ", and its scales, \"" + scale.source().name() + "\", as " + part(scales, scale)
              + "; join the scales in the same order as the weights, or call ignoreScales() to"
              + " leave them unchanged");
    }
  }

  private static String part(List<String> parts, TensorMove move) {
    String target = "\"" + move.target().name() + "\"";
    return parts.size() == 1
        ? target
        : "part " + (parts.indexOf(move.source().name()) + 1) + " of " + parts.size() + " of " + target;
  }

  /**
   * Returns the dimensions of a weight along which its scales run. The list is empty if one scale
   * applies to the whole tensor. The result is empty if the shapes do not match.
   *
   * @param usual the block size of most tensors, in elements
   */
  private Optional<List<Along>> along(Scales.Pair pair, long usual) {
    long[] weight = pair.weight().shape();
    long[] scale = pair.scale().shape();
    if (GroupNumbers.isName(pair.scale().name())) {
      // Scales of this kind have one element for each input. An input is a row in GPTQ, and
      // otherwise a packed column.
      int dim = GroupNumbers.inputs(pair.weight());
      long all = inputs.getOrDefault(pair.weight().name(), 0L);
      return weight.length == 2 && Along.isPacked(weight[dim], all)
          ? Optional.of(List.of(new Along(dim, 0, 1, 1, true).packed(weight[dim], all)))
          : Optional.empty();
    }
    boolean isOne = Arrays.stream(scale).allMatch(extent -> extent == 1);
    if (isOne && (usual == 0 || scale.length != weight.length)) {
      return Optional.of(List.of());
    }
    if (scale.length > weight.length || Purpose.isOfInputs(pair.scale().name())) {
      return Optional.empty();
    }
    List<Along> all = new ArrayList<>();
    for (int d = 0; d < scale.length; d++) {
      Along along = along(pair, d, weight[d], scale[d], usual);
      // If scales have fewer dimensions than the weight, these are the rows, or the experts and
      // rows.
      if (along == null || scale.length < weight.length && scale[d] != weight[d] && scale[d] != 1) {
        return Optional.empty();
      }
      all.add(along);
    }
    return Optional.of(all);
  }

  /**
   * Returns how scales are distributed along dimension {@code d}. Returns null if the counts don't
   * fit.
   */
  private @Nullable Along along(Scales.Pair pair, int d, long elements, long scales, long usual) {
    SourceTensor weight = pair.weight();
    long words = weight.shape()[d];
    long all = inputs.getOrDefault(weight.name(), 0L);
    boolean isOfInputs = weight.shape().length == 2 && d == GroupNumbers.inputs(weight);
    if (isOfInputs && scales > 1 && Along.isPacked(words, all)) {
      Along along = Along.of(d, elements * all / words, scales, usual, false);
      return along == null ? null : along.packed(words, all);
    }
    return Along.of(d, elements, scales, usual, isOfInputs && weight.dtype() == DType.I32);
  }

  private static void checkOrder(TensorMove weight, TensorMove scale, List<Along> written) {
    if (scale.source().shape().length != weight.source().shape().length
        || Arrays.stream(scale.source().shape()).allMatch(extent -> extent == 1)
        || written.stream().allMatch(each -> each.weight() == each.scale())) {
      return;
    }
    int stacked = weight.axes().stored().indexOf(Axes.NEW);
    int other = scale.axes().stored().indexOf(Axes.NEW);
    throw new InvalidArgumentException(
        "tensor \"" + weight.source().name() + "\" and its scales, \"" + scale.source().name()
            + "\": "
            + (stacked == other
                ? "a rule transposes the one and not the other; transpose both"
                : "rules stack the one along dimension " + stacked + ", and the other along "
                    + other + "; give both the same \"stack\""));
  }

  /**
   * Throws unless a joined part of a weight consists of whole blocks, and brings exactly the scales
   * of these blocks.
   */
  private static void checkJoint(TensorMove weight, TensorMove scale, Along along) {
    List<TensorMove.Segment> own = weight.segments(along.weight());
    List<TensorMove.Segment> scales = scale.segments(along.scale());
    long end = weight.shape()[along.weight()];
    boolean fits = own.size() == scales.size();
    TensorMove.Segment at = own.get(0);
    for (int i = 0; i < own.size() && fits; i++) {
      at = own.get(i);
      long last = at.source() + at.length();
      long lastScale = scales.get(i).source() + scales.get(i).length();
      fits =
          at.source() * along.count() == scales.get(i).source() * along.block()
              && at.target() * along.count() == scales.get(i).target() * along.block()
              && (last == end
                  ? lastScale == scale.shape()[along.scale()]
                  : last * along.count() == lastScale * along.block());
    }
    if (!fits) {
      throw new InvalidArgumentException(
          "tensor \"" + weight.source().name() + "\" "
              + (at.length() == end
                  ? "begins at " + at.target() + " of dimension " + along.weight() + " of \""
                  : "is split at " + at.source() + " and " + (at.source() + at.length())
                      + " of dimension " + along.weight() + ", for \"")
              + weight.target().name() + "\", inside "
              + along.shown() + ", and its own scales, \""
              + scale.source().name() + "\", at " + scale.start() + " of \""
              + scale.target().name() + "\"; parts are joined where blocks end, or left apart");
    }
  }

  /** Checks the ranks' pieces of the stored tensors. The shape of a piece shows its block size. */
  private void checkStored(Scales.Pair pair, List<Along> along) {
    Layout weights = pair.weight().from();
    Layout scales = pair.scale().from();
    if (weights.hasPartial() || scales.hasPartial()) {
      return;
    }
    for (int rank : weights.mesh().ranks()) {
      if (!scales.mesh().contains(rank)) {
        continue;
      }
      Runs weight = pair.weight().held(rank);
      Runs scale = pair.scale().held(rank);
      for (Along each : along) {
        long held = weight.shape()[each.weight()];
        Along own = along(pair, each.weight(), held, scale.shape()[each.scale()], 0);
        boolean isOdd = held < pair.weight().shape()[each.weight()] && !each.isUsual();
        if (own != null && (isOdd || own.block() > each.block() && each.block() > 1)) {
          throw new InvalidArgumentException(
              "tensor \"" + pair.weight().name() + "\": rank " + rank + " of IN holds "
                  + held + " of " + pair.weight().shape()[each.weight()]
                  + " along dimension " + each.weight() + ", with " + scale.shape()[each.scale()]
                  + " scales in \"" + pair.scale().name() + "\", which are of blocks of "
                  + own.block() + ": the cut is inside a block, and the scales of several ranks are not"
                  + " those of the whole; ignoreScales() joins them nevertheless");
        }
      }
    }
  }

  /**
   * Throws unless a rank's piece of a weight ends between blocks, and the rank has the scales of
   * its blocks.
   */
  private void checkHeld(
      TargetTensor weight, TargetTensor scale, int rank, List<Along> all) {
    Runs held = weight.held(rank);
    if (isEmpty(held)) {
      return;
    }
    Runs scales = scale.held(rank);
    for (int d = 0; d < scale.shape().length; d++) {
      int dim = d;
      Span whole = new Span(0, scale.shape()[d]);
      List<Span> needed = List.of(whole);
      Optional<Along> along = all.stream().filter(each -> each.scale() == dim).findFirst();
      if (along.isPresent() && whole.end() > 1) {
        List<Span> pieces = Span.of(held.dims().get(along.get().weight()));
        pieces.forEach(piece -> checkCut(weight, scale, piece, along.get()));
        needed = pieces.stream().map(along.get()::scales).toList();
      }
      List<Span> own = Span.of(scales.dims().get(d));
      if (!own.equals(List.of(whole)) && !own.equals(needed)) {
        throw new InvalidArgumentException(
            them(weight, scale) + Checkpoint.rankFile(rank) + " would have " + Span.text(own, whole)
                + " along dimension " + d + ", and needs " + Span.text(needed, whole)
                + " for its piece of the weight, by " + weight.division() + "; "
                + remedy.whole(scale, weight)
                + ", or a layout that cuts both alike, keeps them together");
      }
    }
  }

  private static void checkCut(
      TargetTensor weight, TargetTensor scale, Span piece, Along along) {
    long end = weight.shape()[along.weight()];
    for (long cut : new long[] {piece.start(), piece.end()}) {
      if (cut % along.block() != 0 && cut != end) {
        throw new InvalidArgumentException(
            them(weight, scale) + weight.division() + " cuts dimension " + along.weight() + " at "
                + cut + ", inside " + along.shown() + "; a rule for the weight that cuts it by S"
                + along.weight() + "*" + along.block()
                + (along.count() == 1
                    ? " keeps"
                    : ", and one for them by S" + along.scale() + "*" + along.count() + ", keep")
                + " blocks whole");
      }
    }
  }

  private static String them(TargetTensor weight, TargetTensor scale) {
    return "tensor \"" + weight.name() + "\" " + Arrays.toString(weight.shape()) + " and its scales, \""
        + scale.name() + "\" " + Arrays.toString(scale.shape()) + ": ";
  }
}
