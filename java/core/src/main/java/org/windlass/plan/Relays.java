// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Chooses the relays of data that crosses between hosts. If several targets of a route live on one
 * host and the data comes from another host, one of these targets, the relay, reads the data into
 * its staging buffer. The others read it from there. The parts of a route have different relays, so
 * that all targets relay about the same amount.
 */
final class Relays {
  private Relays() {}

  /**
   * Returns the targets of the route on the host of {@code rank}, including {@code rank}, that
   * share data from another host. Returns an empty list if no data crosses, or if {@code rank} is
   * the only target on its host.
   */
  static List<Integer> sharing(Plan plan, Route route, int rank) {
    Hosts hosts = plan.options().hosts();
    if (!hosts.areSeveral() || route.targets().size() < 2 || plan.wire().bits() < 8) {
      return List.of();
    }
    List<Integer> read =
        plan.options().mode() == TransferMode.STAGED ? List.of(route.source()) : route.sources();
    if (read.stream().allMatch(source -> hosts.areTogether(source, rank))) {
      return List.of();
    }
    List<Integer> together = together(hosts, route.targets(), rank);
    return together.size() < 2 ? List.of() : together;
  }

  /**
   * Returns the ranks that read a part of a route from the source's staging buffer: all targets on
   * the source's host, and a relay on each other host.
   *
   * @param part index of the part in the route
   */
  static List<Integer> readers(Plan plan, Route route, int part) {
    Hosts hosts = plan.options().hosts();
    if (!hosts.areSeveral()) {
      return route.targets();
    }
    Map<Integer, List<Integer>> byHost = new LinkedHashMap<>();
    for (int target : route.targets()) {
      byHost.computeIfAbsent(hosts.of(target), host -> new ArrayList<>()).add(target);
    }
    List<Integer> readers = new ArrayList<>();
    byHost.forEach(
        (host, together) -> {
          if (host == hosts.of(route.source())) {
            readers.addAll(together);
          } else {
            readers.add(of(plan, route, together, part));
          }
        });
    return readers;
  }

  static List<Integer> together(Hosts hosts, List<Integer> ranks, int rank) {
    int host = hosts.of(rank);
    return ranks.stream().filter(other -> hosts.of(other) == host).toList();
  }

  /**
   * Returns the rank from which target {@code rank} copies the whole tensor in mode {@link
   * TransferMode#GATHER_BROADCAST}: this is the root or a relay.
   */
  static int giverOfWhole(Plan plan, int root, int rank) {
    Hosts hosts = plan.options().hosts();
    if (hosts.areTogether(root, rank)) {
      return root;
    }
    int relay = together(hosts, plan.to().mesh().ranks(), rank).get(0);
    return relay == rank ? root : relay;
  }

  /**
   * Returns the targets that copy the whole tensor from the root in mode {@link
   * TransferMode#GATHER_BROADCAST}: all targets on the root's host, and one target on each other
   * host.
   */
  static List<Integer> readersOfWhole(Plan plan, int root) {
    Hosts hosts = plan.options().hosts();
    BitSet relayed = new BitSet();
    List<Integer> readers = new ArrayList<>();
    for (int target : plan.to().mesh().ranks()) {
      if (hosts.areTogether(root, target) || !relayed.get(hosts.of(target))) {
        relayed.set(hosts.of(target));
        readers.add(target);
      }
    }
    return readers;
  }

  static int of(Plan plan, Route route, List<Integer> sharing, int part) {
    long turn = (long) route.source() + plan.options().turn() + part;
    return sharing.get((int) (turn % sharing.size()));
  }
}
