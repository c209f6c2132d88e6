// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Objects;

/**
 * A route as one rank sees it: the data that this rank reads, writes, or both, in its local
 * tensors. The values {@link #transport}, {@link #isSource} and {@link #isTarget} are independent.
 *
 * @param route the region and the ranks that take part
 * @param rank the rank
 * @param isSource whether the rank reads its local source tensor
 * @param isTarget whether the rank writes its local target tensor
 */
public record Chunk(Route route, int rank, boolean isSource, boolean isTarget) {
  public Chunk {
    Objects.requireNonNull(route, "route");
    Plan.checkRank(rank);
  }

  /**
   * A part of the region that is one box in the local tensors of sources and targets.
   *
   * @param length extents of the box, in elements
   * @param sourceStart index of its first element in the local tensor of each of {@link
   *     Route#sources}
   * @param targetStart index of its first element in the local tensor of each of {@link
   *     Route#targets}
   */
  public record Box(long[] length, long[] sourceStart, long[] targetStart) {
    public Box {
      Objects.requireNonNull(length, "length");
      Objects.requireNonNull(sourceStart, "sourceStart");
      Objects.requireNonNull(targetStart, "targetStart");
    }
  }

  /** Returns how the bytes get from the source to the targets. */
  public Transport transport() {
    return route.transport();
  }

  /** Returns the region's boxes in row-major order. An empty region has none. */
  public List<Box> boxes() {
    return route.boxes();
  }
}
