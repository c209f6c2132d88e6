// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.windlass.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that routes move.
 *
 * @param links bytes between every two ranks that exchange any, by source, then target
 * @param sentBytes the sum of links whose ends differ
 * @param localBytes the sum of links whose ends are one rank
 * @param reads bytes of terms that ranks read on others to reduce {@code Partial}, in the source's
 *     dtype, by the rank that holds them, then the reader; beside those of {@code links}, which
 *     carry the source's own term
 * @param reduceBytes the sum of {@code reads}
 */
public record Traffic(
    List<Link> links, long sentBytes, long localBytes, List<Link> reads, long reduceBytes) {
  /** Checks the components. */
  public Traffic {
    links = Copies.list(links, "links");
    reads = Copies.list(reads, "reads");
  }

  /**
   * Wire bytes from one rank to another, or to itself.
   *
   * @param source the rank that sends
   * @param target the rank that gets
   * @param bytes in the wire dtype
   */
  public record Link(int source, int target, long bytes) {}

  /**
   * The traffic of {@code routes}, each of whose targets reduces what it gets.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Traffic of(Iterable<Route> routes) {
    Objects.requireNonNull(routes, "routes");
    return of(routes, Route::targets);
  }

  /** The same where each route's source reduces, once for all targets, as it packs a bucket. */
  static Traffic packed(Iterable<Route> routes) {
    return of(routes, Traffic::packer);
  }

  /** Who reduces a route that goes into a bucket, once for all its targets. */
  static List<Integer> packer(Route route) {
    return route.targets().isEmpty() ? List.of() : List.of(route.source());
  }

  private static Traffic of(Iterable<Route> routes, Function<Route, List<Integer>> readers) {
    Map<Integer, Map<Integer, Long>> bytesOfLinks = new HashMap<>();
    Map<Integer, Map<Integer, Long>> bytesOfReads = new HashMap<>();
    Totals.Sums sums = new Totals.Sums();
    int i = 0;
    try {
      for (Route route : routes) {
        if (route == null) {
          throw new NullPointerException("routes[" + i + "]");
        }
        i++;
        long bytes = route.bytes();
        List<Integer> readersOfThis = readers.apply(route);
        sums.add(route, readersOfThis);
        for (int target : route.targets()) {
          add(bytesOfLinks, route.source(), target, bytes);
        }
        for (int reader : readersOfThis) {
          for (int holder : route.sources()) {
            if (holder != route.source()) {
              add(bytesOfReads, holder, reader, route.termBytes());
            }
          }
        }
      }
    } catch (ArithmeticException e) {
      throw overflow(e);
    }
    return new Traffic(
        sorted(bytesOfLinks), sums.sent, sums.local, sorted(bytesOfReads), sums.reduced);
  }

  static InvalidArgumentException overflow(ArithmeticException e) {
    return new InvalidArgumentException("the bytes that the plan moves overflow 64 bits", e);
  }

  private static void add(
      Map<Integer, Map<Integer, Long>> bytesOfEnds, int source, int target, long bytes) {
    bytesOfEnds
        .computeIfAbsent(source, key -> new HashMap<>())
        .merge(target, bytes, Math::addExact);
  }

  private static List<Link> sorted(Map<Integer, Map<Integer, Long>> bytesOfEnds) {
    List<Link> links = new ArrayList<>();
    bytesOfEnds.forEach(
        (source, bytesTo) ->
            bytesTo.forEach((target, bytes) -> links.add(new Link(source, target, bytes))));
    links.sort(Comparator.comparingInt(Link::source).thenComparingInt(Link::target));
    return links;
  }
}
