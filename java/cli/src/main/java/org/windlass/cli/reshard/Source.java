// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.DeviceMesh;
import org.windlass.Layout;
import org.windlass.Placement;
import org.windlass.checkpoint.Checkpoint;

/**
 * Where a tensor is read from, as a transfer sees it.
 *
 * @param layout the layout of what is bound
 * @param stored what each of its ranks binds
 */
record Source(Layout layout, Map<Integer, Stored> stored) {
  /**
   * The source of a move. Rank files are bound as they are. A whole tensor is one mapped file that
   * every rank of this process reaches, so that each target rank reads its part itself.
   */
  static Source of(Checkpoint in, TensorMove move, List<Integer> targetRanks) {
    Map<Integer, Stored> stored = new LinkedHashMap<>();
    if (in.byRank()) {
      for (int rank : move.from().mesh().ranks()) {
        stored.put(rank, new Stored(in.ranks().get(rank), move.source().name()));
      }
      return new Source(move.from(), stored);
    }
    Stored whole = new Stored(in.whole(move.source().name()), move.source().name());
    targetRanks.forEach(rank -> stored.put(rank, whole));
    Layout layout =
        DeviceMesh.of(targetRanks.size())
            .ranks(targetRanks.stream().mapToInt(Integer::intValue).toArray())
            .layout(Placement.replicate());
    return new Source(layout, stored);
  }
}
