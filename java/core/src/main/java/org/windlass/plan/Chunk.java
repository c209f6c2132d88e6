// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Objects;

/**
 * A route as one rank sees it, in local coordinates: the data that this rank has to read, write, or
 * both. The values {@link #transport}, {@link #isSource} and {@link #isTarget} are independent.
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
   * Part of the region that is one box in the local tensors of both sides.
   *
   * @param length extents of the box, in elements
   * @param sourceStart first element in the local tensor of every rank of {@link Route#sources}
   * @param targetStart first element in the local tensor of every rank of {@link Route#targets}
   */
  public record Box(long[] length, long[] sourceStart, long[] targetStart) {
    public Box {
      Objects.requireNonNull(length, "length");
      Objects.requireNonNull(sourceStart, "sourceStart");
      Objects.requireNonNull(targetStart, "targetStart");
    }
  }

  /** Returns how the bytes cross ranks. */
  public Transport transport() {
    return route.transport();
  }

  /** Returns the boxes that make the region, in row-major order. An empty region has none. */
  public List<Box> boxes() {
    return route.boxes();
  }
}
