// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

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
import java.util.regex.Pattern;
import org.windlass.InvalidArgumentException;
import org.windlass.layout.Layout;

/**
 * Checks that quantized tensors are cut and joined as their scales are: each scale is of a block of
 * elements, so that cuts and joints lie where blocks end, and whoever holds a block holds its scale.
 */
final class ScaleBlocks {
  /**
   * A dimension of a weight and the one of its scales that goes along it.
   *
   * @param weight the dimension as it is stored
   * @param scale that of the scales
   * @param block elements that share a scale
   * @param perElement how many scales there are for each element, which packs as many numbers
   */
  private record Along(int weight, int scale, long block, long perElement) {
    /** The scales of some elements. */
    Span scales(Span elements) {
      return perElement > 1
          ? new Span(elements.start() * perElement, elements.end() * perElement)
          : new Span(elements.start() / block, (elements.end() + block - 1) / block);
    }
  }

  /** Indices of a dimension. */
  private record Span(long start, long end) {
    /** Those of runs, of which some go on where others end. */
    static List<Span> of(List<Runs.Run> runs) {
      List<Span> spans = new ArrayList<>();
      for (Runs.Run run : runs) {
        int last = spans.size() - 1;
        if (run.start() == run.end()) {
          continue;
        }
        if (last >= 0 && spans.get(last).end() == run.start()) {
          spans.set(last, new Span(spans.get(last).start(), run.end()));
        } else {
          spans.add(new Span(run.start(), run.end()));
        }
      }
      return spans;
    }

    @Override
    public String toString() {
      return start + " to " + (end - 1);
    }
  }

  /** Scales of what comes in, which lie along the last dimension, and of which each rank has all. */
  private static final Pattern OF_INPUTS = Pattern.compile("(?:pre_quant|input|act).*");

  private final Map<String, TensorMove> moves = new HashMap<>();
  private final Map<String, List<String>> joined = new HashMap<>();
  private final Map<String, List<String>> written = new HashMap<>();
  private final Map<String, String> weightOf = new HashMap<>();
  private final Set<List<Object>> checked = new HashSet<>();
  private final boolean byRank;
  private final boolean writesWhole;
  /** The block that most have, for tensors that are within a single one; 0 if none has several. */
  private final long usual;

  private ScaleBlocks(
      List<Scales.Pair> pairs, List<TensorMove> moves, boolean byRank, boolean writesWhole) {
    this.byRank = byRank;
    this.writesWhole = writesWhole;
    for (TensorMove move : moves) {
      this.moves.putIfAbsent(move.source().name(), move);
      joined
          .computeIfAbsent(move.target().name(), key -> new ArrayList<>())
          .add(move.source().name());
      written
          .computeIfAbsent(move.source().name(), key -> new ArrayList<>())
          .add(move.target().name());
    }
    Map<Long, Integer> blocks = new LinkedHashMap<>();
    for (Scales.Pair pair : pairs) {
      weightOf.put(pair.scale().name(), pair.weight().name());
      for (Along along : along(pair, 0).orElse(List.of())) {
        if (along.block() > 1 && pair.scale().shape()[along.scale()] > 1) {
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
   * Checks all of them.
   *
   * @param byRank whether the source layouts cut what is stored
   * @param writesWhole whether the target layouts do not
   * @throws InvalidArgumentException naming a weight, its scales, their block and what would do
   */
  static void check(
      Scales scales, List<TensorMove> moves, boolean byRank, boolean writesWhole) {
    List<Scales.Pair> pairs = scales.pairs();
    ScaleBlocks blocks = new ScaleBlocks(pairs, moves, byRank, writesWhole);
    pairs.forEach(blocks::check);
    scales.alone().forEach(scale -> blocks.checkAlone(scales.hold(scale), scale));
  }

  /** A scale that is of no one weight is not cut, unless it is a tensor as others. */
  private void checkAlone(boolean isOfWeights, SourceTensor scale) {
    if (isOfWeights || TargetTensor.elements(scale.shape()) == 1) {
      checkWhole(moves.get(scale.name()).target());
    }
  }

  private void checkWhole(TargetTensor scale) {
    if (writesWhole) {
      return;
    }
    for (int rank : scale.to().mesh().ranks()) {
      if (!Arrays.equals(held(scale, rank).shape(), scale.shape())) {
        throw new InvalidArgumentException(
            "tensor \"" + scale.name() + "\" " + Arrays.toString(scale.shape())
                + " belongs to all of a weight, by its name, and " + scale.shown() + " cuts it; "
                + wholeRule(scale, scale) + " keeps it whole");
      }
    }
  }

  private void check(Scales.Pair pair) {
    TensorMove weight = moves.get(pair.weight().name());
    TensorMove scale = moves.get(pair.scale().name());
    boolean isIndex = GroupNumbers.isName(pair.scale().name());
    boolean isShape = GroupNumbers.isShape(pair.scale().name());
    // Of parts, what numbers the groups of their inputs or tells a shape is joined with nothing.
    boolean isApart = (isIndex || isShape) && isJoined(weight) && !isStacked(weight);
    if (!isApart) {
      checkJoined(weight, scale);
      checkNames(pair);
    } else if (isShape && isJoined(scale)) {
      throw new InvalidArgumentException(
          "tensor \"" + pair.scale().name() + "\" tells the shape of \"" + pair.weight().name()
              + "\", and a rule joins it with others; leave each apart");
    }
    if (byRank) {
      checkNotJoinedOfOnes(pair);
    }
    Optional<List<Along>> lies = isIndex ? Optional.empty() : along(pair, usual);
    if (lies.isEmpty()) {
      if (isIndex) {
        checkIndex(weight, scale);
      } else if (!isJoined(weight)) {
        checkWhole(scale.target());
      }
      checkThere(weight.target(), scale.target());
      return;
    }
    List<Along> along = lies.get();
    if (byRank && isNew(weight.source(), scale.source())) {
      checkStored(pair, along);
    }
    List<Along> written = written(along, weight.axes().stored(), scale.axes().stored());
    checkOrder(pair, written);
    for (Along each : written) {
      checkJoint(weight, scale, each);
    }
    if (!writesWhole && isNew(weight.target(), scale.target(), written)) {
      checkThere(weight.target(), scale.target());
      for (int rank : weight.target().to().mesh().ranks()) {
        checkHeld(weight.target(), scale.target(), rank, written);
      }
    }
  }

  /** Whether none of these layouts and shapes was checked; a model has few that differ. */
  private boolean isNew(SourceTensor weight, SourceTensor scale) {
    return checked.add(
        List.of(
            weight.from(), Arrays.toString(weight.shape()), scale.from(), Arrays.toString(scale.shape())));
  }

  private boolean isNew(TargetTensor weight, TargetTensor scale, List<Along> along) {
    return checked.add(List.of(written(weight), written(scale), along));
  }

  /** All that decides which file holds what of a tensor. */
  private static List<Object> written(TargetTensor tensor) {
    return List.of(tensor.to(), tensor.firstFile(), tensor.shapeList(), tensor.fuse());
  }

  /** The dimensions along which both are written. */
  private static List<Along> written(List<Along> along, List<Integer> weight, List<Integer> scale) {
    List<Along> written = new ArrayList<>();
    for (Along each : along) {
      written.add(
          new Along(
              weight.indexOf(each.weight()),
              scale.indexOf(each.scale()),
              each.block(),
              each.perElement()));
    }
    if (weight.contains(Axes.NEW) && scale.contains(Axes.NEW)) {
      written.add(new Along(weight.indexOf(Axes.NEW), scale.indexOf(Axes.NEW), 1, 1));
    }
    return written;
  }

  /** Every file that has some of a weight has some of its scales. */
  private void checkThere(TargetTensor weight, TargetTensor scale) {
    if (writesWhole) {
      return;
    }
    for (int rank : weight.to().mesh().ranks()) {
      if (!scale.to().mesh().contains(weight.fileOf(rank) + scale.firstFile())
          && !isEmpty(held(weight, rank))) {
        throw new InvalidArgumentException(
            them(weight, scale) + "file " + weight.fileOf(rank) + " of " + weight.shown()
                + " has nothing of the scales, which lie by " + scale.shown() + "; "
                + wholeRule(scale, weight) + " gives them to all files");
      }
    }
  }

  private static boolean isEmpty(Runs held) {
    return Arrays.stream(held.shape()).anyMatch(extent -> extent == 0);
  }

  private static boolean isStacked(TensorMove move) {
    return move.axes().stored().get(move.dim()) == Axes.NEW;
  }

  private boolean isJoined(TensorMove move) {
    return joined.get(move.target().name()).size() > 1;
  }

  /** A weight and its scales are in one module where they are written, too. */
  private void checkNames(Scales.Pair pair) {
    if (!module(pair.weight().name()).equals(module(pair.scale().name()))) {
      return;
    }
    List<String> scales = written.get(pair.scale().name()).stream().map(ScaleBlocks::module).toList();
    for (String name : written.get(pair.weight().name())) {
      if (!scales.contains(module(name))) {
        throw new InvalidArgumentException(
            "tensor \"" + pair.weight().name() + "\" is written as \"" + name + "\", and its scales, \""
                + pair.scale().name() + "\", as \"" + written.get(pair.scale().name()).get(0)
                + "\", which are not of one module; rename both alike, or ignoreScales() leaves them so");
      }
    }
  }

  private static String module(String name) {
    return name.substring(0, name.lastIndexOf('.') + 1);
  }

  /** Ranks of IN that have one scale each of a whole piece have no scales of the whole. */
  private static void checkNotJoinedOfOnes(Scales.Pair pair) {
    Layout from = pair.scale().from();
    long all = TargetTensor.elements(pair.scale().shape());
    long own = TargetTensor.elements(from.localShape(pair.scale().shape(), from.mesh().rankOf(0)));
    boolean isPerTensor = pair.scale().shape().length != pair.weight().shape().length;
    if (isPerTensor && own == 1 && all > 1 && all != pair.weight().shape()[0]) {
      throw new InvalidArgumentException(
          "tensor \"" + pair.scale().name() + "\": each rank of IN has one scale for its piece of \""
              + pair.weight().name() + "\", and " + all + " of them are not those of the whole; give it R in"
              + " the source, or ignoreScales() joins them all the same");
    }
  }

  /** The groups of a weight's inputs, one for each: of GPTQ's rows, and of packed columns else. */
  private void checkIndex(TensorMove weight, TensorMove scale) {
    long[] shape = weight.source().shape();
    long inputs = scale.source().shape().length == 1 ? scale.source().shape()[0] : 0;
    int dim = GroupNumbers.inputs(weight.source());
    boolean isOfParts = isJoined(weight) && !isStacked(weight);
    if (shape.length != 2 || inputs == 0 || inputs % shape[dim] != 0 || isOfParts) {
      if (!isJoined(scale)) {
        checkWhole(scale.target());
      }
      return;
    }
    if (!writesWhole) {
      Along stored = new Along(dim, 0, 1, inputs / shape[dim]);
      List<Along> along =
          written(List.of(stored), weight.axes().stored(), scale.axes().stored());
      checkThere(weight.target(), scale.target());
      for (int rank : weight.target().to().mesh().ranks()) {
        checkHeld(weight.target(), scale.target(), rank, along);
      }
    }
  }

  /** What a rank holds of it, in the order of the whole. */
  static Runs held(TargetTensor target, int rank) {
    return target
        .fuse()
        .map(fuse -> fuse.runs(target.shape(), rank))
        .orElseGet(() -> Runs.of(target.to(), target.shape(), rank));
  }

  /** What joins a weight with others joins its scales with theirs. */
  private void checkJoined(TensorMove weight, TensorMove scale) {
    List<String> weights = joined.get(weight.target().name());
    List<String> scales = joined.get(scale.target().name());
    List<String> expected = scales.stream().map(name -> weightOf.getOrDefault(name, "")).toList();
    if (!expected.equals(weights)) {
      throw new InvalidArgumentException(
          "tensor \"" + weight.source().name() + "\" is written as " + part(weights, weight)
              + ", and its scales, \"" + scale.source().name() + "\", as " + part(scales, scale)
              + "; rules that join the weights join their scales in the same order, or"
              + " ignoreScales() leaves them so");
    }
  }

  private static String part(List<String> parts, TensorMove move) {
    String target = "\"" + move.target().name() + "\"";
    return parts.size() == 1
        ? target
        : "part " + (parts.indexOf(move.source().name()) + 1) + " of " + parts.size() + " of " + target;
  }

  /**
   * The dimensions of a weight along which its scales lie; empty where their shape does not belong to
   * the weight's. One scale for a whole tensor lies along none.
   *
   * @param usual the block of others, of which a smaller dimension is a part
   */
  private static Optional<List<Along>> along(Scales.Pair pair, long usual) {
    long[] weight = pair.weight().shape();
    long[] scale = pair.scale().shape();
    boolean isOne = Arrays.stream(scale).allMatch(extent -> extent == 1);
    if (isOne && (usual == 0 || scale.length != weight.length)) {
      return Optional.of(List.of());
    }
    String name = pair.scale().name().substring(module(pair.scale().name()).length());
    if (scale.length > weight.length || OF_INPUTS.matcher(name).matches()) {
      return Optional.empty();
    }
    List<Along> all = new ArrayList<>();
    for (int d = 0; d < scale.length; d++) {
      Along along = along(d, d, weight[d], scale[d], usual);
      // Fewer dimensions are those of rows, or of experts and rows.
      if (along == null || scale.length < weight.length && scale[d] != weight[d] && scale[d] != 1) {
        return Optional.empty();
      }
      all.add(along);
    }
    return Optional.of(all);
  }

  /** How {@code scales} lie along {@code elements}; null if they do not. */
  private static Along along(int weight, int scale, long elements, long scales, long usual) {
    if (scales == 0 || elements == 0) {
      return null;
    }
    if (scales > elements) {
      return scales % elements == 0 ? new Along(weight, scale, 1, scales / elements) : null;
    }
    if (scales == 1) {
      return new Along(weight, scale, Math.max(usual, elements), 1);
    }
    long least = (elements + scales - 1) / scales;
    long most = (elements + scales - 2) / (scales - 1) - 1;
    if (least > most) {
      return null;
    }
    // A block's extent is a power of two in all formats that are known, but for 3 bits, which shapes
    // alone don't tell from others whose last block is shorter.
    long power = Long.highestOneBit(most);
    return new Along(weight, scale, power >= least ? power : least, 1);
  }

  /** Both keep the order of the dimensions along which they lie. */
  private static void checkOrder(Scales.Pair pair, List<Along> written) {
    if (pair.scale().shape().length == pair.weight().shape().length
        && Arrays.stream(pair.scale().shape()).anyMatch(extent -> extent > 1)) {
      for (Along each : written) {
        if (each.weight() != each.scale()) {
          throw new InvalidArgumentException(
              "tensor \"" + pair.weight().name() + "\" and its scales, \"" + pair.scale().name()
                  + "\": a rule transposes the one and not the other; transpose both");
        }
      }
    }
  }

  /** A part of what is joined begins where a block does. */
  private static void checkJoint(TensorMove weight, TensorMove scale, Along along) {
    if (along.weight() != weight.dim() || weight.offset() == 0) {
      return;
    }
    boolean fits =
        along.scale() == scale.dim()
            && (along.perElement() > 1
                ? weight.offset() * along.perElement() == scale.offset()
                : weight.offset() == scale.offset() * along.block());
    if (!fits) {
      throw new InvalidArgumentException(
          "tensor \"" + weight.source().name() + "\" begins at " + weight.offset() + " of dimension "
              + along.weight() + " of \"" + weight.target().name() + "\", inside a block of "
              + along.block() + " that has one scale, and its own scales, \""
              + scale.source().name() + "\", at " + scale.offset() + " of \""
              + scale.target().name() + "\"; parts are joined where blocks end, or left apart");
    }
  }

  /** The ranks' pieces of what is stored, whose own shapes tell their blocks. */
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
      Runs weight = Runs.of(weights, pair.weight().shape(), rank);
      Runs scale = Runs.of(scales, pair.scale().shape(), rank);
      for (Along each : along) {
        Along own =
            along(0, 0, weight.shape()[each.weight()], scale.shape()[each.scale()], 0);
        boolean isCut = weight.shape()[each.weight()] < pair.weight().shape()[each.weight()];
        boolean isOdd = isCut && Long.bitCount(each.block()) != 1;
        if (own != null && (isOdd || own.block() > each.block() && each.block() > 1)) {
          throw new InvalidArgumentException(
              "tensor \"" + pair.weight().name() + "\": rank " + rank + " of IN holds "
                  + weight.shape()[each.weight()] + " of " + pair.weight().shape()[each.weight()]
                  + " along dimension " + each.weight() + ", with " + scale.shape()[each.scale()]
                  + " scales in \"" + pair.scale().name() + "\", which are of blocks of "
                  + own.block() + ": the cut is inside a block, and the scales of several ranks are not"
                  + " those of the whole; ignoreScales() joins them all the same");
        }
      }
    }
  }

  /** What a rank holds of a weight ends where blocks do, and it holds their scales. */
  private static void checkHeld(
      TargetTensor weight, TargetTensor scale, int rank, List<Along> all) {
    Runs held = held(weight, rank);
    if (isEmpty(held)) {
      return;
    }
    // Files tell who holds both.
    int other = weight.fileOf(rank) + scale.firstFile();
    Runs scales = held(scale, other);
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
            them(weight, scale) + "file " + weight.fileOf(rank) + " would hold scales " + own + " along dimension " + d
                + ", and takes " + needed + " for what it holds of the weight under " + weight.shown()
                + "; " + wholeRule(scale, weight) + ", or a layout that cuts both alike, keeps them together");
      }
    }
  }

  private static void checkCut(
      TargetTensor weight, TargetTensor scale, Span piece, Along along) {
    if (along.perElement() > 1) {
      return;
    }
    long end = weight.shape()[along.weight()];
    for (long cut : new long[] {piece.start(), piece.end()}) {
      if (cut % along.block() != 0 && cut != end) {
        throw new InvalidArgumentException(
            them(weight, scale) + weight.shown() + " cuts dimension " + along.weight() + " at " + cut
                + ", inside a block of " + along.block() + " that has one scale; a rule for the weight that"
                + " cuts it by S" + along.weight() + "*" + along.block() + " keeps blocks whole");
      }
    }
  }

  /** A rule that keeps scales whole in all files of a weight, as a remedy. */
  private static String wholeRule(TargetTensor scale, TargetTensor weight) {
    String replicas = weight.files().ranks().size() + ":R";
    return "the rule {\"match\": \"" + scale.name() + "\", \"to\": \"" + replicas + "\"}";
  }

  /** Begins a complaint. */
  private static String them(TargetTensor weight, TargetTensor scale) {
    return "tensor \"" + weight.name() + "\" " + Arrays.toString(weight.shape()) + " and its scales, \""
        + scale.name() + "\" " + Arrays.toString(scale.shape()) + ": ";
  }
}
