// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.DType;

/**
 * Plans how members of one source cell send to other ranks on their own hosts; {@link Grid} defines
 * cells and members. If a rank needs a part of the cell that it does not hold, the members on its
 * host send that part. These members divide the sending into equal {@link Shares}.
 */
final class Nearby {
  static final Nearby NONE = new Nearby();

  /**
   * A region that one member of the source cell sends to ranks with the same target cell.
   *
   * @param targets the ranks that receive the region
   */
  record Service(int member, List<Integer> targets, Overlap[] region) {}

  /**
   * The part of the source cell that one rank needs.
   *
   * @param place the rank's position in the target mesh
   * @param before number of elements of the source cell in earlier target cells
   * @param size number of elements that the rank needs
   * @param region the part in each dimension
   */
  record Need(int rank, int place, long before, long size, Overlap[] region) {}

  private final List<Service> services = new ArrayList<>();
  private final Map<Integer, List<Service>> byTarget = new HashMap<>();

  List<Service> services() {
    return services;
  }

  /** Returns the regions that members send to {@code rank}. Empty if no member is on its host. */
  List<Service> of(int rank) {
    return byTarget.getOrDefault(rank, List.of());
  }

  /**
   * Divides the needs of the ranks of one host among the members on that host.
   *
   * @param members the members on that host
   * @param needs for each target cell, the needs of the ranks that hold it
   * @param cutsSmall see {@link Shares}
   * @param turn selects the member that gets the first share
   */
  void add(
      List<Integer> members,
      List<List<Need>> needs,
      boolean cutsSmall,
      DType wire,
      int turn) {
    double total = 0;
    long elements = 0;
    for (List<Need> same : needs) {
      total += (double) same.get(0).size * same.size();
      elements += same.get(0).size;
    }
    Shares shares = new Shares(members.size(), total, elements, cutsSmall, wire);
    double passed = 0;
    for (List<Need> same : needs) {
      long size = same.get(0).size;
      Overlap[] region = same.get(0).region;
      Demand demand = new Demand(passed, size, same.size(), region);
      double end = passed + (double) size * same.size();
      int share = shares.at(passed);
      do {
        shares.of(
            share,
            demand,
            (sender, low, high, from, to) -> {
              int member = members.get((int) (((long) sender + turn) % members.size()));
              List<Integer> targets = same.subList(low, high).stream().map(Need::rank).toList();
              add(new Service(member, targets, demand.part(region, from, to)));
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
