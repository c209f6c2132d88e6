// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.windlass.DType;

/**
 * The services of members of one source cell to ranks of their own hosts. The ranks of a host that
 * need a piece of the cell, and do not hold the cell, are served by the members on that host alone,
 * in equal {@link Shares}.
 */
final class Nearby {
  static final Nearby NONE = new Nearby();

  /** What one member sends to ranks of one target cell. */
  record Service(int member, int[] cells, List<Integer> targets, Overlap[] region) {}

  /** What a rank needs of the cell: its target cell, where that begins, and its size. */
  record Need(int rank, int[] cells, long before, long size) {}

  private final List<Service> services = new ArrayList<>();
  private final Map<Integer, List<Service>> byTarget = new HashMap<>();

  /** All services, by host, then by target cell. */
  List<Service> services() {
    return services;
  }

  /** Who serves {@code rank}; nobody if no member is on its host. */
  List<Service> of(int rank) {
    return byTarget.getOrDefault(rank, List.of());
  }

  /**
   * Shares what the ranks of one host need among the members there.
   *
   * @param needs by target cell
   * @param regions the region of the piece in a target cell
   * @param turn which member's stretch comes first
   */
  void add(
      List<Integer> members,
      List<List<Need>> needs,
      Function<int[], Overlap[]> regions,
      boolean cutsSmall,
      DType wire,
      int turn) {
    double total = 0;
    long elements = 0;
    for (List<Need> same : needs) {
      total += (double) same.get(0).size * same.size();
      elements += same.get(0).size;
    }
    Shares shares = Shares.of(members.size(), total, elements, cutsSmall, wire);
    double passed = 0;
    for (List<Need> same : needs) {
      int[] cells = same.get(0).cells;
      long size = same.get(0).size;
      Demand demand = new Demand(passed, size, same.size(), () -> regions.apply(cells));
      double end = passed + (double) size * same.size();
      int share = shares.at(passed);
      do {
        shares.of(
            share,
            demand,
            (sender, low, high, from, to) -> {
              int member = members.get((int) (((long) sender + turn) % members.size()));
              List<Integer> targets = same.subList(low, high).stream().map(Need::rank).toList();
              add(new Service(member, cells, targets, demand.part(from, to)));
            });
      } while (shares.start(++share) < end);
      passed = end;
    }
  }

  private void add(Service service) {
    services.add(service);
    for (int rank : service.targets) {
      byTarget.computeIfAbsent(rank, r -> new ArrayList<>()).add(service);
    }
  }
}
