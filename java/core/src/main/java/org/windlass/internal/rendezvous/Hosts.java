// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.MismatchException;

/**
 * The hosts of the ranks of a start. Ranks of one host can share memory. Hosts have numbers from 0
 * on, in the order of their lowest ranks.
 */
final class Hosts {
  private final List<Arrival> all;
  private final int[] numbers; // number of each rank's host
  private final List<Arrival> firsts = new ArrayList<>(); // the lowest rank of each host

  /** Throws Mismatch if several machines use the same host name. */
  Hosts(List<Arrival> all) {
    this.all = all;
    this.numbers = new int[all.size()];
    Map<String, Integer> known = new HashMap<>();
    for (int rank = 0; rank < all.size(); rank++) {
      Arrival arrival = all.get(rank);
      String name = arrival.named().isEmpty() ? machine(arrival) : "named " + arrival.named();
      numbers[rank] = known.computeIfAbsent(name, any -> firsts.size());
      if (numbers[rank] == firsts.size()) {
        firsts.add(arrival);
      }
      Arrival first = first(rank);
      if (!machine(first).equals(machine(arrival))) {
        throw new MismatchException(
            "ranks " + first.rank() + " and " + rank + " both have " + Host.NAME_VARIABLE + " '"
                + arrival.named() + "', and live on different machines, or in different pid"
                + " namespaces; give each machine a name of its own, or none",
            List.of(first.rank(), rank));
      }
    }
  }

  /**
   * Returns a name of the machine and the PID namespace. Processes see one another if these are the
   * same.
   */
  private static String machine(Arrival arrival) {
    return arrival.host() + " " + arrival.process().pidNamespace();
  }

  List<Arrival> all() {
    return all;
  }

  boolean areSeveral() {
    return firsts.size() > 1;
  }

  int[] numbers() {
    return numbers.clone();
  }

  /** Returns the description of the lowest rank on the host of {@code rank}. */
  Arrival first(int rank) {
    return firsts.get(numbers[rank]);
  }

  boolean areTogether(int one, int other) {
    return numbers[one] == numbers[other];
  }

  /** Returns the smallest number of cores that the ranks of any host share. */
  int cores() {
    return IntStream.range(0, firsts.size())
        .map(host -> Arrival.cores(all.stream().filter(of -> numbers[of.rank()] == host).toList()))
        .min()
        .orElseThrow();
  }

  /** Returns the name of the host of {@code rank}, such as {@code host 1 (b)}. */
  String name(int rank) {
    Arrival arrival = all.get(rank);
    String name = arrival.named().isEmpty() ? arrival.machine() : arrival.named();
    return "host " + numbers[rank] + " (" + name + ")";
  }

  /**
   * Returns a text such as {@code rank 3}, followed by the host's name if there are several hosts.
   *
   * @param hosts null if the hosts are not known yet
   */
  static String rank(@Nullable Hosts hosts, int rank) {
    return hosts != null && hosts.areSeveral() ? rank + " on " + hosts.name(rank) : "" + rank;
  }
}
