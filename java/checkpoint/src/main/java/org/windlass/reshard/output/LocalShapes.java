// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Computes the shapes of the ranks' local tensors. Many targets are alike, so it caches results.
 */
final class LocalShapes {
  private static final int MOST = 100_000;

  /**
   * Local shapes, keyed by division, global shape and rank. Targets share equal divisions and
   * shapes, so these are compared by identity.
   */
  private final Map<Division, Map<long[], Map<Integer, List<Long>>>> known =
      new IdentityHashMap<>();

  private int count;

  /** Returns the shape of a rank's local tensor; empty if the rank is not in the target's mesh. */
  Optional<List<Long>> of(TargetTensor target, int rank) {
    if (!target.to().mesh().contains(rank)) {
      return Optional.empty();
    }
    if (count > MOST) {
      known.clear();
      count = 0;
    }
    return Optional.of(
        known
            .computeIfAbsent(target.division(), key -> new IdentityHashMap<>())
            .computeIfAbsent(target.shape(), key -> new HashMap<>())
            .computeIfAbsent(rank, key -> compute(target, rank)));
  }

  private List<Long> compute(TargetTensor target, int rank) {
    count++;
    return List.of(Arrays.stream(target.held(rank).shape()).boxed().toArray(Long[]::new));
  }

  /** Returns the size in bytes of a rank's local tensor. The rank must be in the target's mesh. */
  long bytes(TargetTensor target, int rank) {
    long elements = 1;
    for (long extent : of(target, rank).orElseThrow()) {
      elements *= extent;
    }
    return target.dtype().bytesOf(elements);
  }
}
