// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.windlass.DType;

/**
 * Which tensors of a checkpoint hold scales of which others: those of a {@link Purpose#SCALE} name
 * beside a quantized tensor, in the same module or under the tensor's own name.
 */
final class Scales {
  /** A quantized tensor, and one of those that hold its scales. */
  record Pair(SourceTensor weight, SourceTensor scale) {}

  private final Map<String, String> first = new LinkedHashMap<>();
  /** The weights whose each may be. */
  private final Map<SourceTensor, List<SourceTensor>> weights = new LinkedHashMap<>();

  Scales(Collection<SourceTensor> tensors) {
    NavigableMap<String, SourceTensor> scales = new TreeMap<>();
    Map<String, List<SourceTensor>> byModule = new LinkedHashMap<>();
    for (SourceTensor tensor : tensors) {
      if (Purpose.of(tensor.name()) == Purpose.SCALE) {
        scales.put(tensor.name(), tensor);
        byModule.computeIfAbsent(module(tensor.name()), key -> new ArrayList<>()).add(tensor);
      }
    }
    for (SourceTensor weight : tensors) {
      if (scales.containsKey(weight.name()) || !isQuantized(weight.dtype())) {
        continue;
      }
      Set<SourceTensor> own = new LinkedHashSet<>(under(scales, weight.name()));
      own.addAll(byModule.getOrDefault(module(weight.name()), List.of()));
      for (SourceTensor scale : own) {
        first.putIfAbsent(weight.name(), scale.name());
        weights.computeIfAbsent(scale, key -> new ArrayList<>()).add(weight);
      }
    }
  }

  /** Those whose name goes on from that of the weight. */
  private static List<SourceTensor> under(
      NavigableMap<String, SourceTensor> scales, String weight) {
    List<SourceTensor> under = new ArrayList<>();
    for (char separator : new char[] {'.', '_'}) {
      under.addAll(
          scales.subMap(weight + separator, true, weight + (char) (separator + 1), false).values());
    }
    return under;
  }

  private static boolean isQuantized(DType dtype) {
    return dtype != DType.BOOL && dtype.bits() <= 32 && (!Casts.touch(dtype) || dtype.bits() <= 8);
  }

  private static String module(String name) {
    return name.substring(0, name.lastIndexOf('.') + 1);
  }

  /** A tensor that holds scales of that one, if any does. */
  Optional<String> of(SourceTensor weight) {
    return Optional.ofNullable(first.get(weight.name()));
  }

  /** Whether a tensor holds scales of another one. */
  boolean hold(SourceTensor tensor) {
    return weights.containsKey(tensor);
  }

  /**
   * Every tensor that holds scales, with its weight: of several in its module the one whose name its
   * own goes on from. Where there is none of those, it is left out.
   */
  List<Pair> pairs() {
    List<Pair> pairs = new ArrayList<>();
    weights.forEach(
        (scale, all) ->
            all.stream()
                .filter(weight -> scale.name().startsWith(weight.name()))
                .max(Comparator.comparingInt(weight -> weight.name().length()))
                .or(() -> all.size() == 1 ? Optional.of(all.get(0)) : Optional.empty())
                .ifPresent(weight -> pairs.add(new Pair(weight, scale))));
    return pairs;
  }
}
