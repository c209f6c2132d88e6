// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that plans move between {@link Hosts} and within them. If several ranks of a host need
 * the same data from another host, the data crosses once and counts once; the ranks of the host
 * then share it. In mode {@link TransferMode#STAGED}, values cross in the wire dtype. In the other
 * modes, a rank reads sources in the source dtype.
 *
 * @param between bytes that cross from one host to another, ordered by source, then target. Data for
 *     several ranks of the target counts once
 * @param within wire bytes that the ranks of each host receive from any host, counting every copy;
 *     ordered by host
 */
public record HostTraffic(List<Traffic.Link> between, List<Within> within) {
  public HostTraffic {
    between = Copies.list(between, "between");
    within = Copies.list(within, "within");
  }

  /**
   * Bytes that the ranks of a host receive.
   *
   * @param host number of the host
   * @param bytes number of bytes in the wire dtype, added up over the ranks
   */
  public record Within(int host, long bytes) {}

  /**
   * Returns the bytes that cross between hosts: the sum of {@link #between}.
   *
   * @throws InvalidArgumentException if the sum exceeds 64 bits
   */
  public long crossBytes() {
    try {
      return between.stream().mapToLong(Traffic.Link::bytes).reduce(0, Math::addExact);
    } catch (ArithmeticException e) {
      throw Traffic.overflow(e);
    }
  }

  /** Adds up the traffic of routes. A sum beyond 64 bits throws {@link ArithmeticException}. */
  static final class Sums {
    private final LinkSums between = new LinkSums();
    private final LinkSums within = new LinkSums();

    void add(Plan plan, Route route) {
      List<Integer> targets = route.targets();
      if (targets.isEmpty()) {
        return;
      }
      Hosts hosts = plan.options().hosts();
      if (!hosts.areSeveral()) {
        within.add(0, 0, Math.multiplyExact(targets.size(), route.bytes()));
        return;
      }
      Map<Integer, Long> copies = new TreeMap<>(); // by host
      for (int target : targets) {
        copies.merge(hosts.of(target), 1L, Long::sum);
      }
      int sender = hosts.of(route.source());
      boolean isPacked =
          plan.options().mode() == TransferMode.STAGED && route.transport() != Transport.LOCAL;
      if (isPacked) {
        addTerms(route, hosts, sender);
      }
      copies.forEach(
          (host, count) -> {
            within.add(host, host, Math.multiplyExact(count, route.bytes()));
            if (!isPacked) {
              addTerms(route, hosts, host);
            } else if (host != sender) {
              between.add(sender, host, route.bytes());
            }
          });
    }

    /**
     * Adds the bytes of a route's terms that are on other hosts and that ranks of host {@code
     * reader} read.
     */
    private void addTerms(Route route, Hosts hosts, int reader) {
      for (int source : route.sources()) {
        int host = hosts.of(source);
        if (host != reader) {
          between.add(host, reader, route.termBytes());
        }
      }
    }

    HostTraffic traffic() {
      return new HostTraffic(
          between.links(),
          within.links().stream().map(link -> new Within(link.source(), link.bytes())).toList());
    }
  }
}
