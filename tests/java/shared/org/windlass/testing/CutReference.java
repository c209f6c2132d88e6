// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * What a rank holds of one tensor dimension, element by element, from the definition of placements.
 * It cuts and joins lists of global indices. Slow, obvious, and shares no code with the planner.
 */
public final class CutReference {
  private CutReference() {}

  /** A shard of the dimension by mesh dimension {@code meshDim}. */
  private record Shard(int meshDim, int ranks, long unit, int split) {}

  /** The global indices that the rank at {@code coordinates} holds, in local order. */
  public static List<Long> held(Layout layout, int[] coordinates, int dim, long extent) {
    List<Long> held = LongStream.range(0, extent).boxed().toList();
    for (Shard shard : inOrder(layout, dim)) {
      List<Long> joined = new ArrayList<>();
      for (List<Long> piece : pieces(held, shard.split, 1)) {
        joined.addAll(pieces(piece, shard.ranks, shard.unit).get(coordinates[shard.meshDim]));
      }
      held = joined;
    }
    return held;
  }

  /** The shards in the order in which they cut, of mesh dimensions of more than one rank. */
  private static List<Shard> inOrder(Layout layout, int dim) {
    List<Shard> later = new ArrayList<>();
    for (int m = layout.mesh().ndim() - 1; m >= 0; m--) {
      int ranks = layout.mesh().size(m);
      Placement placement = layout.placements().get(m);
      if (ranks > 1 && placement instanceof Placement.Shard plain && plain.dim() == dim) {
        later.add(0, new Shard(m, ranks, plain.unit(), 1));
      } else if (ranks > 1 && placement instanceof Placement.StridedShard s && s.dim() == dim) {
        int nested = nested(later, s.split());
        later.add(
            Math.max(nested, 0), new Shard(m, ranks, 1, nested < 0 ? s.split() : 1));
      }
    }
    return later;
  }

  /** How many later shards make {@code split} pieces by plain cuts; -1 if none do. */
  private static int nested(List<Shard> later, int split) {
    int pieces = 1;
    for (int count = 0; ; count++) {
      if (pieces == split) {
        return count;
      }
      if (count == later.size() || later.get(count).split > 1 || later.get(count).unit > 1) {
        return -1;
      }
      pieces *= later.get(count).ranks;
    }
  }

  private static List<List<Long>> pieces(List<Long> list, int count, long unit) {
    long units = (list.size() + unit - 1) / unit;
    long each = (units + count - 1) / count * unit;
    List<List<Long>> pieces = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      int from = (int) Math.min(list.size(), i * each);
      int to = (int) Math.min(list.size(), (i + 1) * each);
      pieces.add(list.subList(from, to));
    }
    return pieces;
  }
}
