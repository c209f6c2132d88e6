// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.List;

/** Adds up {@link HostTraffic}. A sum beyond 64 bits throws {@link ArithmeticException}. */
final class HostSums {
  private final LinkSums between = new LinkSums();
  private final LinkSums within = new LinkSums();
  private int[] found = new int[8];

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
    int count = hostsOf(targets, hosts);
    int sender = hosts.of(route.source());
    boolean isPacked =
        plan.options().mode() == TransferMode.STAGED && route.transport() != Transport.LOCAL;
    if (isPacked) {
      addTerms(route, hosts, sender);
    }
    for (int at = 0; at < count; ) {
      int host = found[at];
      int first = at;
      while (at < count && found[at] == host) {
        at++;
      }
      within.add(host, host, Math.multiplyExact(at - first, route.bytes()));
      if (!isPacked) {
        addTerms(route, hosts, host);
      } else if (host != sender) {
        between.add(sender, host, route.bytes());
      }
    }
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

  /** Stores the hosts of {@code ranks} into {@link #found}, sorted. Returns their number. */
  private int hostsOf(List<Integer> ranks, Hosts hosts) {
    int count = ranks.size();
    if (count > found.length) {
      found = new int[2 * count];
    }
    for (int i = 0; i < count; i++) {
      found[i] = hosts.of(ranks.get(i));
    }
    Arrays.sort(found, 0, count);
    return count;
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
