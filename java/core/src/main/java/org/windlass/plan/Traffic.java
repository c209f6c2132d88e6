// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that routes move.
 *
 * @param links wire bytes between every two ranks that exchange any, ordered by source, then target
 * @param sentBytes sum of the links between two different ranks
 * @param localBytes sum of the links from a rank to itself
 * @param reads bytes of terms that ranks read on other ranks to reduce {@code Partial}. They are in
 *     the source's dtype, ordered by the rank that holds them, then by the reader. A sender's own
 *     term is not among them, since {@code links} has the result.
 * @param reduceBytes sum of {@code reads}
 */
public record Traffic(
    List<Link> links, long sentBytes, long localBytes, List<Link> reads, long reduceBytes) {
  public Traffic {
    links = Copies.list(links, "links");
    reads = Copies.list(reads, "reads");
  }

  /**
   * Wire bytes from one rank to another, or to itself.
   *
   * @param source rank that sends
   * @param target rank that receives
   * @param bytes number of bytes in the wire dtype
   */
  public record Link(int source, int target, long bytes) {}

  /**
   * Returns the traffic of {@code routes}. With {@code Partial}, every target reduces the terms
   * itself.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Traffic of(Iterable<Route> routes) {
    Objects.requireNonNull(routes, "routes");
    Sums sums = new Sums();
    int i = 0;
    for (Route route : routes) {
      if (route == null) {
        throw new NullPointerException("routes[" + i + "]");
      }
      i++;
      sums.add(route, route.targets());
    }
    return sums.traffic();
  }

  /**
   * Returns the traffic of one transfer of {@code plans}.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Traffic ofPlans(List<Plan> plans) {
    Sums sums = new Sums();
    for (Plan plan : Copies.list(plans, "plans")) {
      Consumer<Route> add = route -> sums.add(route, plan.readers(route));
      if (plan.isGathering()) {
        plan.gatheringRoutes().forEach(add);
      } else {
        plan.forEachRoute(add);
      }
    }
    return sums.traffic();
  }

  /**
   * Returns the traffic of only those routes in which {@code rank} takes part.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Traffic ofPlans(List<Plan> plans, int rank) {
    Plan.checkRank(rank);
    Sums sums = new Sums();
    for (Plan plan : Copies.list(plans, "plans")) {
      List<Route> routes = plan.isGathering() ? plan.gatheringRoutes(rank) : plan.routesFor(rank);
      routes.forEach(route -> sums.add(route, plan.readers(route)));
    }
    return sums.traffic();
  }

  private static final class Sums {
    private final LinkSums links = new LinkSums();
    private final LinkSums reads = new LinkSums();

    void add(Route route, List<Integer> readers) {
      try {
        for (int target : route.targets()) {
          links.add(route.source(), target, route.bytes());
        }
        for (int holder : route.sources()) {
          if (holder != route.source()) {
            for (int reader : readers) {
              reads.add(holder, reader, route.termBytes());
            }
          }
        }
      } catch (ArithmeticException e) {
        throw overflow(e);
      }
    }

    Traffic traffic() {
      try {
        return of(links.links(), reads.links());
      } catch (ArithmeticException e) {
        throw overflow(e);
      }
    }
  }

  private static Traffic of(List<Link> links, List<Link> reads) {
    long sent = 0;
    long local = 0;
    for (Link link : links) {
      if (link.source() == link.target()) {
        local = Math.addExact(local, link.bytes());
      } else {
        sent = Math.addExact(sent, link.bytes());
      }
    }
    long reduced = 0;
    for (Link read : reads) {
      reduced = Math.addExact(reduced, read.bytes());
    }
    return new Traffic(links, sent, local, reads, reduced);
  }

  static InvalidArgumentException overflow(ArithmeticException e) {
    return new InvalidArgumentException("the bytes that the plan moves overflow 64 bits", e);
  }
}
