// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What members of one source cell send to ranks of their own hosts. The ranks of a host that need a
 * piece of the cell, and do not hold the cell, are served by the members on that host alone, in
 * equal stretches of the axis that {@link Shares} describes.
 */
final class Nearby {
  static final Nearby NONE = new Nearby();

  /** The ranks of one target cell that one member serves. */
  record Service(int member, int[] cells, List<Integer> targets) {}

  /** What a rank needs of the cell: where on the axis that lies, and how long it is. */
  record Need(int rank, int[] cells, long place, long length) {}

  private final List<Service> services = new ArrayList<>();
  private final Map<Integer, Service> byTarget = new HashMap<>();

  boolean isEmpty() {
    return services.isEmpty();
  }

  /** All services, by host, then by place on the axis. */
  List<Service> services() {
    return services;
  }

  /** Who serves {@code rank}, or null if no member is on its host. */
  Service of(int rank) {
    return byTarget.get(rank);
  }

  /**
   * Shares what the ranks of one host need among the members there.
   *
   * @param turn which member's stretch comes first
   */
  void add(List<Integer> members, List<Need> needs, int turn) {
    needs.sort(Comparator.comparingLong(Need::place));
    long total = needs.stream().mapToLong(Need::length).sum();
    long passed = 0;
    for (Need need : needs) {
      long share = total == 0 ? 0 : Math.min(members.size() - 1, passed * members.size() / total);
      add(members.get((int) ((share + turn) % members.size())), need);
      passed += need.length;
    }
  }

  private void add(int member, Need need) {
    Service last = services.isEmpty() ? null : services.get(services.size() - 1);
    if (last == null || last.member != member || !Arrays.equals(last.cells, need.cells)) {
      last = new Service(member, need.cells, new ArrayList<>());
      services.add(last);
    }
    last.targets.add(need.rank);
    byTarget.put(need.rank, last);
  }
}
