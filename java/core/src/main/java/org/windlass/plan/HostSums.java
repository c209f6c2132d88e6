// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Adds up {@link HostTraffic}. A sum beyond 64 bits throws {@link ArithmeticException}. */
final class HostSums {
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

  /** Adds the bytes of a route's terms that ranks of host {@code reader} read on other hosts. */
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
        between.links().stream()
            .map(link -> new HostTraffic.Link(link.source(), link.target(), link.bytes()))
            .toList(),
        within.links().stream()
            .map(link -> new HostTraffic.Within(link.source(), link.bytes()))
            .toList());
  }
}
