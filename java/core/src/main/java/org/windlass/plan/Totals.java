// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The sums of one or more plans, made in one pass that keeps no route: for plans of many ranks.
 *
 * @param sentBytes as {@link Traffic#sentBytes}
 * @param localBytes as {@link Traffic#localBytes}
 * @param reduceBytes as {@link Traffic#reduceBytes}
 * @param buckets how many {@link Bucket#pack} makes
 * @param hosts the same bytes by hosts
 */
public record Totals(
    long sentBytes, long localBytes, long reduceBytes, long buckets, HostTraffic hosts) {
  /** Checks the components. */
  public Totals {
    Objects.requireNonNull(hosts, "hosts");
  }

  /**
   * The totals of a transfer of {@code plans} together.
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
   * The totals of those routes alone that {@code rank} takes part in.
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

  /** Totals that are being added up. */
  private static final class Sums {
    final Bucket.Packing packing = new Bucket.Packing();
    final HostSums hosts = new HostSums();
    private long sent;
    private long local;
    private long reduced;

    /** Adds routes of a plan, which are what moves unless one rank gathers the whole. */
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
