// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.reshard.tensor.Casts;
import org.windlass.reshard.tensor.Moves;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Finds the tensors of a checkpoint that hold scales of other tensors. They have a {@link
 * Purpose#SCALE} name next to a quantized tensor, in the same module or under the tensor's own
 * name.
 */
public final class Scales {
  /** Pairs a quantized tensor with a tensor that holds its scales. */
  record Pair(SourceTensor weight, SourceTensor scale) {}

  private final Map<String, String> first = new LinkedHashMap<>();
  /** Every tensor whose name has the purpose {@link Purpose#SCALE}. */
  private final List<SourceTensor> named = new ArrayList<>();
  private final Map<SourceTensor, List<SourceTensor>> weights = new LinkedHashMap<>();

  /** Finds the scales among the tensors of a checkpoint. */
  public Scales(Collection<SourceTensor> tensors) {
    NavigableMap<String, SourceTensor> scales = new TreeMap<>();
    Map<String, List<SourceTensor>> byModule = new LinkedHashMap<>();
    for (SourceTensor tensor : tensors) {
      if (Purpose.of(tensor.name()) == Purpose.SCALE) {
        scales.put(tensor.name(), tensor);
        named.add(tensor);
        byModule.computeIfAbsent(module(tensor.name()), key -> new ArrayList<>()).add(tensor);
      }
    }
    for (SourceTensor weight : tensors) {
      if (scales.containsKey(weight.name()) || !isQuantized(weight.dtype())) {
        continue;
      }
      Set<SourceTensor> own = new LinkedHashSet<>(named(scales, weight.name() + "."));
      own.addAll(named(scales, weight.name() + "_"));
      own.addAll(ofModule(scales, module(weight.name())));
      own.addAll(byModule.getOrDefault(module(weight.name()), List.of()));
      for (SourceTensor scale : own) {
        first.putIfAbsent(weight.name(), scale.name());
        weights.computeIfAbsent(scale, key -> new ArrayList<>()).add(weight);
      }
    }
  }

  /** Returns the scales whose names begin with {@code begin}. */
  private static Collection<SourceTensor> named(
      NavigableMap<String, SourceTensor> scales, String begin) {
    return scales.subMap(begin, begin + Character.MAX_VALUE).values();
  }

  /** Returns the scales whose names have no further dot after the module's name. */
  private static List<SourceTensor> ofModule(
      NavigableMap<String, SourceTensor> scales, String module) {
    int length = module.length() - 1;
    return length < 0
        ? List.of()
        : named(scales, module.substring(0, length) + "_").stream()
            .filter(scale -> scale.name().indexOf('.', length) < 0)
            .toList();
  }

  private static boolean isQuantized(DType dtype) {
    return dtype != DType.BOOL && dtype.bits() <= 32 && (!Casts.touch(dtype) || dtype.bits() <= 8);
  }

  /** Returns the part of a name up to the last dot. */
  static String module(String name) {
    return name.substring(0, name.lastIndexOf('.') + 1);
  }

  /** Returns the name of a tensor that holds scales of that weight. Empty if there is none. */
  public Optional<String> of(SourceTensor weight) {
    return Optional.ofNullable(first.get(weight.stored()));
  }

  /**
   * Returns whether a tensor keeps its dtype. A tensor keeps its dtype if it holds scales of
   * another tensor or of activations. In a checkpoint of quantized tensors, a tensor named "scales"
   * also keeps its dtype, but not one named "scale", which may be the weight of a norm.
   */
  public boolean keep(SourceTensor tensor) {
    return hold(tensor)
        || Purpose.isOfActivations(tensor.name())
        || (!weights.isEmpty() && tensor.name().endsWith("scales"));
  }

  boolean hold(SourceTensor tensor) {
    return weights.containsKey(tensor);
  }

  /**
   * Returns every tensor that holds scales, with its weight. If several weights are possible, takes
   * the weight whose name shares the longest prefix with the tensor's name. If this is true of
   * several weights, leaves the tensor out.
   */
  List<Pair> pairs() {
    List<Pair> pairs = new ArrayList<>();
    weights.forEach(
        (scale, all) ->
            nearest(scale, all).ifPresent(weight -> pairs.add(new Pair(weight, scale))));
    return pairs;
  }

  private static Optional<SourceTensor> nearest(SourceTensor scale, List<SourceTensor> weights) {
    int most = weights.stream().mapToInt(weight -> common(scale, weight)).max().orElse(0);
    List<SourceTensor> nearest =
        weights.stream().filter(weight -> common(scale, weight) == most).toList();
    return nearest.size() == 1 ? Optional.of(nearest.get(0)) : Optional.empty();
  }

  /**
   * Throws InvalidArgumentException if a rule joins scales that each rank of IN has only for its
   * own piece of the weight. Such scales do not apply to the whole weight.
   */
  static void checkNotJoinedOfOnes(Scales.Pair pair) {
    Layout from = pair.scale().from();
    long all = TargetTensor.elements(pair.scale().shape());
    long own =
        TargetTensor.elements(pair.scale().held(from.mesh().rankAtPlace(0)).shape());
    boolean isPerTensor = pair.scale().shape().length != pair.weight().shape().length;
    if (isPerTensor && own == 1 && all > 1 && all != pair.weight().shape()[0]) {
      throw new InvalidArgumentException(
          "tensor \"" + pair.scale().name() + "\": each rank of IN has one scale for its piece of \""
              + pair.weight().name() + "\", and " + all + " of them are not those of the whole; give it R in"
              + " the source, or ignoreScales() joins them nevertheless");
    }
  }

  /**
   * Throws if a rule appends zeros to a weight or to its scales, because these zeros could count as
   * values.
   */
  void checkNotPadded(Moves moves) {
    Set<SourceTensor> pairs = new LinkedHashSet<>();
    pairs().forEach(pair -> pairs.addAll(List.of(pair.weight(), pair.scale())));
    for (SourceTensor tensor : pairs) {
      if (tensor.division().isPadded(tensor.shape())
          || moves.of(tensor).stream()
              .anyMatch(to -> to.target().division().isPadded(to.target().shape()))) {
        throw new InvalidArgumentException(
            "tensor \"" + tensor.name() + "\" is a quantized weight or holds the scales of"
                + " one, and a rule or layout.json pads it; quantized tensors are not padded, so leave"
                + " \"pad_to\" out of its rule");
      }
    }
  }

  /**
   * Warns or throws if rules leave out a weight but not its scales, or scales but not their weight.
   *
   * @param isWritten returns whether a tensor is written
   * @param ignoreScales whether the request allows casts of tensors that have scales
   * @throws InvalidArgumentException with a message that names a weight that is written without its
   *     scales
   */
  public void lookAtDropped(Predicate<String> isWritten, boolean ignoreScales, Doubts doubts) {
    for (Pair pair : pairs()) {
      String weight = pair.weight().name();
      String scale = pair.scale().name();
      boolean isLost = isWritten.test(weight) && !isWritten.test(scale);
      if (isLost && !Purpose.isOfActivations(scale) && !ignoreScales) {
        throw new InvalidArgumentException(
            "tensor \"" + weight + "\" is written, and a rule drops its scales, \"" + scale
                + "\"; drop both, or call ignoreScales() to write the weight without them");
      }
      if (isWritten.test(scale) && !isWritten.test(weight)) {
        doubts.add(scale, "scales of \"" + weight + "\", which a rule drops");
      }
    }
  }

  private static int common(SourceTensor a, SourceTensor b) {
    int differs = Arrays.mismatch(a.name().toCharArray(), b.name().toCharArray());
    return differs < 0 ? a.name().length() : differs;
  }

  /** Returns the tensors with scales for which no weight is certain. */
  List<SourceTensor> alone() {
    Set<SourceTensor> paired = new HashSet<>();
    pairs().forEach(pair -> paired.add(pair.scale()));
    return named.stream().filter(scale -> !paired.contains(scale)).toList();
  }
}
