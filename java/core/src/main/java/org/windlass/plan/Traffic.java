// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that plans move, for each link. {@link Totals} has their sums.
 *
 * @param links wire bytes between every two ranks that exchange any, ordered by source, then target
 * @param reads bytes of terms that ranks read on other ranks to reduce {@code Partial}. Terms are
 *     in the source's dtype. They are ordered by the rank that holds them, then by the rank that
 *     reads them. A sender's own term does not count here, since {@code links} contains the result
 */
public record Traffic(List<Link> links, List<Link> reads) {
  public Traffic {
    links = Copies.list(links, "links");
    reads = Copies.list(reads, "reads");
  }

  /**
   * Bytes from one rank to another or to itself, or from one host to another.
   *
   * @param source rank or host that sends
   * @param target rank or host that receives
   * @param bytes number of bytes
   */
  public record Link(int source, int target, long bytes) {}

  /**
   * Returns the traffic of one transfer of {@code plans}.
   *
   * @throws InvalidArgumentException if the bytes of a link exceed 64 bits
   */
  public static Traffic ofPlans(List<Plan> plans) {
    return of(
        plans,
        (plan, action) -> {
          if (plan.isGathering()) {
            plan.gatheringRoutes().forEach(action);
          } else {
            plan.forEachRoute(action);
          }
        });
  }

  /**
   * Returns the traffic of only those routes in which {@code rank} takes part.
   *
   * @throws InvalidArgumentException if the bytes of a link exceed 64 bits
   */
  public static Traffic ofPlans(List<Plan> plans, int rank) {
    Plan.checkRank(rank);
    return of(
        plans,
        (plan, action) ->
            (plan.isGathering() ? plan.gatheringRoutes(rank) : plan.routesFor(rank))
                .forEach(action));
  }

  private static Traffic of(List<Plan> plans, BiConsumer<Plan, Consumer<Route>> selection) {
    LinkSums links = new LinkSums();
    LinkSums reads = new LinkSums();
    try {
      for (Plan plan : Copies.list(plans, "plans")) {
        selection.accept(
            plan,
            route -> {
              route
                  .targets()
                  .forEach(target -> links.add(route.source(), target, route.bytes()));
              for (int holder : route.sources()) {
                if (holder != route.source()) {
                  plan.readers(route)
                      .forEach(reader -> reads.add(holder, reader, route.termBytes()));
                }
              }
            });
      }
    } catch (ArithmeticException e) {
      throw overflow(e);
    }
    return new Traffic(links.links(), reads.links());
  }

  static InvalidArgumentException overflow(ArithmeticException e) {
    return new InvalidArgumentException("the bytes that the plan moves overflow 64 bits", e);
  }
}
