// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * What every rank holds, element by element, straight from the definition of placements: lists of
 * global indices are cut and joined. Slow, obvious, and shares no code with the planner.
 */
public final class DistributionReference {
  private DistributionReference() {}

  /**
   * The global indices along {@code dim} that the rank at {@code coordinates} holds, in local
   * order.
   */
  public static List<Long> held(Layout layout, int[] coordinates, int dim, long extent) {
    List<Long> held = LongStream.range(0, extent).boxed().toList();
    for (int m = 0; m < coordinates.length; m++) {
      int ranks = layout.mesh().size(m);
      Placement placement = layout.placements().get(m);
      if (placement instanceof Placement.Shard shard && shard.dim() == dim) {
        held = pieces(held, ranks, shard.unit()).get(coordinates[m]);
      } else if (placement instanceof Placement.StridedShard strided && strided.dim() == dim) {
        List<Long> joined = new ArrayList<>();
        for (List<Long> piece : pieces(held, strided.split(), 1)) {
          joined.addAll(pieces(piece, ranks, 1).get(coordinates[m]));
        }
        held = joined;
      }
    }
    return held;
  }

  /** For each dimension, {@link #held}. */
  public static List<List<Long>> held(Layout layout, int rank, long[] shape) {
    List<List<Long>> held = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      held.add(held(layout, layout.mesh().coordinates(rank), d, shape[d]));
    }
    return held;
  }

  /** The ranks whose terms make the value that {@code rank} holds a term of, row-major. */
  public static List<Integer> group(Layout layout, int rank) {
    int[] own = layout.mesh().coordinates(rank);
    List<Integer> group = new ArrayList<>();
    for (int other : layout.mesh().ranks()) {
      int[] coordinates = layout.mesh().coordinates(other);
      boolean together = true;
      for (int m = 0; m < own.length; m++) {
        boolean partial = layout.placements().get(m) instanceof Placement.Partial;
        together &= partial || own[m] == coordinates[m];
      }
      if (together) {
        group.add(other);
      }
    }
    return group;
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
