// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/**
 * Which of the ranks of a start live on one host, and can share memory. Hosts have numbers, from 0
 * on, in the order of their lowest ranks.
 */
final class Hosts {
  private final List<Arrival> all;
  private final int[] numbers;

  /** Of each host, the one of the lowest rank. */
  private final List<Arrival> firsts = new ArrayList<>();

  private Hosts(List<Arrival> all) {
    this.all = all;
    this.numbers = new int[all.size()];
  }

  /**
   * Of the ranks that say so, in rank order. Mismatch where a name that {@link Host#NAME_VARIABLE}
   * gives is that of several machines or pid namespaces.
   */
  static Hosts of(List<Arrival> all, FailureMaker failures) {
    Hosts hosts = new Hosts(all);
    Map<String, Integer> known = new HashMap<>();
    for (int rank = 0; rank < all.size(); rank++) {
      Arrival arrival = all.get(rank);
      Integer number = known.putIfAbsent(key(arrival), known.size());
      if (number == null) {
        number = hosts.firsts.size();
        hosts.firsts.add(arrival);
      }
      Arrival first = hosts.firsts.get(number);
      if (!place(first).equals(place(arrival))) {
        throw failures.make(
            Native.WL_MISMATCH,
            "ranks " + first.rank() + " and " + rank + " both have " + Host.NAME_VARIABLE + " '"
                + arrival.named() + "', and live on different machines, or in different pid"
                + " namespaces; give those of each a name of their own, or none",
            null,
            "",
            List.of(first.rank(), rank));
      }
      hosts.numbers[rank] = number;
    }
    return hosts;
  }

  private static String key(Arrival arrival) {
    return arrival.named().isEmpty() ? place(arrival) : "named " + arrival.named();
  }

  /** Where processes see one another. */
  private static String place(Arrival arrival) {
    return arrival.host() + " " + arrival.process().pidNamespace();
  }

  /** All ranks, in their order. */
  List<Arrival> all() {
    return all;
  }

  boolean areSeveral() {
    return firsts.size() > 1;
  }

  /** The host's number, of each rank. */
  int[] numbers() {
    return numbers.clone();
  }

  /** The one of the lowest rank of that rank's host. */
  Arrival first(int rank) {
    return firsts.get(numbers[rank]);
  }

  boolean areTogether(int one, int other) {
    return numbers[one] == numbers[other];
  }

  /** How many cores those of any host share, at least. */
  int cores() {
    List<List<Arrival>> each = new ArrayList<>();
    firsts.forEach(first -> each.add(new ArrayList<>()));
    all.forEach(arrival -> each.get(numbers[arrival.rank()]).add(arrival));
    return each.stream().mapToInt(Arrival::cores).min().orElseThrow();
  }

  /** That rank's host, such as {@code host 1 (b)}. */
  String name(int rank) {
    Arrival arrival = all.get(rank);
    String name = arrival.named().isEmpty() ? arrival.machine() : arrival.named();
    return "host " + numbers[rank] + " (" + name + ")";
  }

  /**
   * What a rank is called, behind "rank": by its host, too, where ranks live on several.
   *
   * @param hosts null where nobody knows so far
   */
  static String rank(Hosts hosts, int rank) {
    return hosts != null && hosts.areSeveral() ? rank + " on " + hosts.name(rank) : "" + rank;
  }
}
