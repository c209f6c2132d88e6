// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The relays of what crosses between hosts: where several targets of a route live on one host and
 * read it from another, one of them does, and stages it for all. They take turns, so that each
 * relays about as much.
 */
final class Relays {
  private Relays() {}

  /**
   * The targets that share what crosses to the host of {@code rank}, one of them; none where
   * nothing crosses, or to one alone.
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

  /** Who reads part {@code part} of a route in its source's stage: targets, or their relays. */
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

  /** Those of {@code ranks} that live with {@code rank}. */
  static List<Integer> together(Hosts hosts, List<Integer> ranks, int rank) {
    int host = hosts.of(rank);
    return ranks.stream().filter(other -> hosts.of(other) == host).toList();
  }

  /** Who gives {@code rank}, a target, the whole tensor of a gathering: its root, or a relay. */
  static int giverOfWhole(Plan plan, int root, int rank) {
    Hosts hosts = plan.options().hosts();
    if (hosts.areTogether(root, rank)) {
      return root;
    }
    int relay = together(hosts, plan.to().mesh().ranks(), rank).get(0);
    return relay == rank ? root : relay;
  }

  /**
   * The targets that read the whole tensor on the root of a gathering: all that live on its host,
   * and one on each other.
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

  /** Which of those that share a route relays part {@code part} of it. */
  static int of(Plan plan, Route route, List<Integer> sharing, int part) {
    long turn = (long) route.source() + plan.options().turn() + part;
    return sharing.get((int) (turn % sharing.size()));
  }
}
