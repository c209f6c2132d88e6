// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The totals of one or more plans. They are computed in one pass that stores no routes, so plans
 * may have many ranks.
 *
 * @param sentBytes wire bytes between different ranks
 * @param localBytes wire bytes from ranks to themselves
 * @param reduceBytes bytes of {@code Partial} terms that ranks read on other ranks
 * @param buckets number of buckets that {@link Bucket#pack} makes
 * @param hosts bytes between hosts and within them
 */
public record Totals(
    long sentBytes, long localBytes, long reduceBytes, long buckets, HostTraffic hosts) {
  public Totals {
    Objects.requireNonNull(hosts, "hosts");
  }

  /**
   * Returns the totals of one transfer of {@code plans}.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Totals of(List<Plan> plans) {
    List<Plan> all = Copies.list(plans, "plans");
    Sums sums = new Sums();
    for (int i = 0; i < all.size(); i++) {
      Plan plan = all.get(i);
      RouteFinder finder = plan.finder();
      for (int place = 0; place < plan.from().mesh().size(); place++) {
        sums.add(plan, finder.from(place));
        if (i == all.size() - 1) {
          sums.packing.close(plan.from().mesh().rankAtPlace(place));
        }
      }
      if (plan.isGathering()) {
        sums.move(plan, plan.gatheringRoutes());
      }
    }
    return sums.totals();
  }

  /**
   * Returns the totals of only those routes in which {@code rank} takes part.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Totals of(List<Plan> plans, int rank) {
    Plan.checkRank(rank);
    Sums sums = new Sums();
    for (Plan plan : Copies.list(plans, "plans")) {
      sums.add(plan, plan.routesFor(rank));
      if (plan.isGathering()) {
        sums.move(plan, plan.gatheringRoutes(rank));
      }
    }
    return sums.totals();
  }

  private static final class Sums {
    final Bucket.Packing packing = new Bucket.Packing();
    final HostTraffic.Sums hosts = new HostTraffic.Sums();
    private long sent;
    private long local;
    private long reduced;

    /**
     * Adds routes to the totals. In mode {@link TransferMode#GATHER_BROADCAST}, their bytes don't
     * count.
     */
    void add(Plan plan, List<Route> routes) {
      for (Route route : routes) {
        packing.place(route, plan.options().bucketBytes());
      }
      if (!plan.isGathering()) {
        move(plan, routes);
      }
    }

    void move(Plan plan, List<Route> routes) {
      try {
        for (Route route : routes) {
          long bytes = Math.multiplyExact(route.targets().size(), route.bytes());
          if (route.transport() == Transport.LOCAL) {
            local = Math.addExact(local, bytes);
          } else {
            sent = Math.addExact(sent, bytes);
          }
          long read = Math.multiplyExact(plan.readers(route).size(), route.reduceBytes());
          reduced = Math.addExact(reduced, read);
          hosts.add(plan, route);
        }
      } catch (ArithmeticException e) {
        throw Traffic.overflow(e);
      }
    }

    Totals totals() {
      return new Totals(sent, local, reduced, packing.buckets(), hosts.traffic());
    }
  }
}
