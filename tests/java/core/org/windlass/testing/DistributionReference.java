// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.ArrayList;
import java.util.List;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * What every rank holds, element by element, straight from the definition of placements: lists of
 * global indices are cut and joined. Slow, obvious, and shares no code with the planner.
 */
public final class DistributionReference {
  private DistributionReference() {}

  /** For each dimension, the global indices that {@code rank} holds, in local order. */
  public static List<List<Long>> held(Layout layout, int rank, long[] shape) {
    List<List<Long>> held = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      held.add(CutReference.held(layout, layout.mesh().coordinates(rank), d, shape[d]));
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
}
