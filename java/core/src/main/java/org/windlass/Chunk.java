// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.List;

/**
 * A route as one rank sees it, in local coordinates: what the rank has to read, write, or both.
 * {@link #transport}, {@link #isSource} and {@link #isTarget} are three independent facts.
 *
 * @param route the region and who takes part
 * @param rank the rank
 * @param isSource whether the rank reads its local source tensor
 * @param isTarget whether the rank writes its local target tensor
 */
public record Chunk(Route route, int rank, boolean isSource, boolean isTarget) {
  /**
   * Part of the region that is one box in the local tensors of both sides.
   *
   * @param length its extents, in elements
   * @param sourceStart its first element in the local tensor of every rank of {@link Route#sources}
   * @param targetStart its first element in the local tensor of every rank of {@link Route#targets}
   */
  public record Box(long[] length, long[] sourceStart, long[] targetStart) {}

  /** How the bytes cross ranks. */
  public Transport transport() {
    return route.transport();
  }

  /** The boxes that make the region, row-major; none if the region is empty. */
  public List<Box> boxes() {
    int ndim = route.ndim();
    if (route.numel() == 0) {
      return List.of();
    }
    List<Box> boxes = new ArrayList<>();
    int[] at = new int[ndim];
    int d;
    do {
      long[] length = new long[ndim];
      long[] sourceStart = new long[ndim];
      long[] targetStart = new long[ndim];
      for (d = 0; d < ndim; d++) {
        Overlap overlap = route.overlap(d);
        length[d] = overlap.length(at[d]);
        sourceStart[d] = overlap.sourceStart(at[d]);
        targetStart[d] = overlap.targetStart(at[d]);
      }
      boxes.add(new Box(length, sourceStart, targetStart));
      for (d = ndim - 1; d >= 0 && ++at[d] == route.overlap(d).segments; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
    return boxes;
  }
}
