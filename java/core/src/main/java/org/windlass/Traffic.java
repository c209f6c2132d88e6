// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.internal.Copies;

/**
 * Bytes that routes move.
 *
 * @param links bytes between every two ranks that exchange any, by source, then target
 * @param sentBytes the sum of links whose ends differ
 * @param localBytes the sum of links whose ends are one rank
 * @param reduceBytes what is read from peers for {@code Partial}
 */
public record Traffic(List<Link> links, long sentBytes, long localBytes, long reduceBytes) {
  /** Checks the components. */
  public Traffic {
    links = Copies.list(links, "links");
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
   * The traffic of {@code routes}.
   *
   * @throws InvalidArgumentException if a sum exceeds 64 bits
   */
  public static Traffic of(Iterable<Route> routes) {
    Objects.requireNonNull(routes, "routes");
    Map<Long, Long> bytesOfLinks = new HashMap<>();
    long sent = 0;
    long local = 0;
    long reduced = 0;
    int i = 0;
    try {
      for (Route route : routes) {
        if (route == null) {
          throw new NullPointerException("routes[" + i + "]");
        }
        i++;
        long bytes = route.bytes();
        for (int target : route.targets()) {
          bytesOfLinks.merge((long) route.source() << 32 | target, bytes, Math::addExact);
          if (target == route.source()) {
            local = Math.addExact(local, bytes);
          } else {
            sent = Math.addExact(sent, bytes);
          }
          reduced = Math.addExact(reduced, route.reduceBytes());
        }
      }
    } catch (ArithmeticException e) {
      throw new InvalidArgumentException("the bytes that the plan moves overflow 64 bits", e);
    }
    List<Link> links = new ArrayList<>(bytesOfLinks.size());
    bytesOfLinks.forEach(
        (ends, bytes) -> links.add(new Link((int) (ends >> 32), ends.intValue(), bytes)));
    links.sort(Comparator.comparingInt(Link::source).thenComparingInt(Link::target));
    return new Traffic(links, sent, local, reduced);
  }
}
