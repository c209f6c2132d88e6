// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.layout.DeviceMesh;

/**
 * Adds up the bytes between every two ranks or hosts. A sum beyond 64 bits throws {@link
 * ArithmeticException}.
 */
final class LinkSums {
  /**
   * Sums by links. The key of a link is its source times {@link DeviceMesh#MAX_RANKS}, plus its
   * target.
   */
  private final Map<Long, long[]> sums = new HashMap<>();

  void add(int source, int target, long more) {
    long link = (long) source * DeviceMesh.MAX_RANKS + target;
    long[] sum = sums.computeIfAbsent(link, none -> new long[1]);
    sum[0] = Math.addExact(sum[0], more);
  }

  /** Returns the links, ordered by source, then target. */
  List<Traffic.Link> links() {
    return sums.entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .map(entry -> link(entry.getKey(), entry.getValue()[0]))
        .toList();
  }

  private static Traffic.Link link(long link, long bytes) {
    int source = (int) (link / DeviceMesh.MAX_RANKS);
    return new Traffic.Link(source, (int) (link % DeviceMesh.MAX_RANKS), bytes);
  }
}
