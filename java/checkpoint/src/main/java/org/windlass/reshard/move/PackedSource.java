// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Represents the files of a tensor whose elements take less than a byte.
 *
 * @param layout the layout of the stored tensor; one rank holds all of a whole tensor
 * @param stored the part of each rank of the layout
 */
record PackedSource(Layout layout, Map<Integer, Stored> stored) {
  /** Returns the source of a move. */
  static PackedSource of(Checkpoint in, TensorMove move) {
    Map<Integer, Stored> stored = new LinkedHashMap<>();
    if (in.byRank()) {
      for (int rank : move.from().mesh().ranks()) {
        SafetensorsFile file = Objects.requireNonNull(in.ranks().get(rank));
        stored.put(rank, new Stored(file, move.source().stored()));
      }
      return new PackedSource(move.from(), stored);
    }
    stored.put(0, new Stored(in.whole(move.source().stored()), move.source().stored()));
    return new PackedSource(DeviceMesh.of(1).layout(Placement.replicate()), stored);
  }
}
