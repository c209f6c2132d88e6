// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that plans move.
 *
 * @param links wire bytes between every two ranks that exchange any, ordered by source, then target
 * @param reads bytes of terms that ranks read on other ranks to reduce {@code Partial}. They are in
 *     the source's dtype, ordered by the rank that holds them, then by the reader. A sender's own
 *     term is not among them, since {@code links} has the result.
 */
public record Traffic(List<Link> links, List<Link> reads) {
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

  /**
   * Returns the sum of the links between two different ranks.
   *
   * @throws InvalidArgumentException if it exceeds 64 bits
   */
  public long sentBytes() {
    return sum(links.stream().filter(link -> link.source != link.target).mapToLong(Link::bytes));
  }

  /**
   * Returns the sum of the links from a rank to itself.
   *
   * @throws InvalidArgumentException if it exceeds 64 bits
   */
  public long localBytes() {
    return sum(links.stream().filter(link -> link.source == link.target).mapToLong(Link::bytes));
  }

  /**
   * Returns the sum of {@link #reads}.
   *
   * @throws InvalidArgumentException if it exceeds 64 bits
   */
  public long reduceBytes() {
    return sum(reads.stream().mapToLong(Link::bytes));
  }

  static long sum(LongStream bytes) {
    try {
      return bytes.reduce(0, Math::addExact);
    } catch (ArithmeticException e) {
      throw overflow(e);
    }
  }

  static InvalidArgumentException overflow(ArithmeticException e) {
    return new InvalidArgumentException("the bytes that the plan moves overflow 64 bits", e);
  }
}
