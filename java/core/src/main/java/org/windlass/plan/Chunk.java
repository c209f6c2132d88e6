// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Objects;

/**
 * A chunk: a route as one rank sees it, in local coordinates: what the rank has to read, write, or
 * both. {@link #transport}, {@link #isSource} and {@link #isTarget} are three independent facts.
 *
 * @param route the region and who takes part
 * @param rank the rank
 * @param isSource whether the rank reads its local source tensor
 * @param isTarget whether the rank writes its local target tensor
 */
public record Chunk(Route route, int rank, boolean isSource, boolean isTarget) {
  /** Checks the components. */
  public Chunk {
    Objects.requireNonNull(route, "route");
    Plan.checkRank(rank);
  }

  /**
   * Part of the region that is one box in the local tensors of both sides.
   *
   * @param length its extents, in elements
   * @param sourceStart its first element in the local tensor of every rank of {@link Route#sources}
   * @param targetStart its first element in the local tensor of every rank of {@link Route#targets}
   */
  public record Box(long[] length, long[] sourceStart, long[] targetStart) {
    /** Checks the components. */
    public Box {
      Objects.requireNonNull(length, "length");
      Objects.requireNonNull(sourceStart, "sourceStart");
      Objects.requireNonNull(targetStart, "targetStart");
    }
  }

  /** How the bytes cross ranks. */
  public Transport transport() {
    return route.transport();
  }

  /** The boxes that make the region, row-major; none if the region is empty. */
  public List<Box> boxes() {
    return route.boxes();
  }
}
