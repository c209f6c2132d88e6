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
 * Computes the shapes of the ranks' parts of targets. Many targets are alike, so it remembers some
 * results.
 */
final class LocalShapes {
  private static final int MOST = 100_000;

  /** Shapes by rank, of a division and then of the whole tensor. Equal divisions are one object. */
  private final Map<Division, Map<List<Long>, Map<Integer, List<Long>>>> known =
      new IdentityHashMap<>();

  private int count;

  /** Returns the shape of the part that a rank holds; empty if the rank is not of the mesh. */
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
            .computeIfAbsent(target.division(), key -> new HashMap<>())
            .computeIfAbsent(target.shapeList(), key -> new HashMap<>())
            .computeIfAbsent(rank, key -> compute(target, rank)));
  }

  private List<Long> compute(TargetTensor target, int rank) {
    count++;
    return Arrays.stream(target.held(rank).shape()).boxed().toList();
  }

  /** Returns the size in bytes of the part that a rank of the mesh holds. */
  long bytes(TargetTensor target, int rank) {
    long elements = 1;
    for (long extent : of(target, rank).orElseThrow()) {
      elements *= extent;
    }
    return target.dtype().bytesOf(elements);
  }
}
