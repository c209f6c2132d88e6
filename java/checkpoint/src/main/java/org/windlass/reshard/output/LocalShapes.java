// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.layout.Layout;
import org.windlass.reshard.tensor.Fuse;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Computes the shapes of the ranks' parts of targets. Many targets are alike, so it remembers some
 * results.
 */
final class LocalShapes {
  private static final int MOST = 4096;

  /** Identifies targets whose parts have the same shapes. Equal layouts are mostly one object. */
  private record Key(Layout to, List<Long> shape, Optional<Fuse> fuse) {
    @Override
    public boolean equals(Object other) {
      return other instanceof Key key
          && to == key.to
          && shape.equals(key.shape)
          && fuse.equals(key.fuse);
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(to) * 31 + shape.hashCode();
    }
  }

  private final Map<Key, Map<Integer, List<Long>>> known = new HashMap<>();

  /** Returns the shape of the part that a rank holds; empty if the rank is not of the mesh. */
  Optional<List<Long>> of(TargetTensor target, int rank) {
    if (!target.to().mesh().contains(rank)) {
      return Optional.empty();
    }
    if (known.size() > MOST) {
      known.clear();
    }
    return Optional.of(
        known
            .computeIfAbsent(
                new Key(target.to(), target.shapeList(), target.fuse()), key -> new HashMap<>())
            .computeIfAbsent(
                rank, key -> Arrays.stream(target.held(rank).shape()).boxed().toList()));
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
