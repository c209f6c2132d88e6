// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Failure;

/** Which ranks count as those of one host. */
class HostsTest {
  /** Ranks, each {@code MACHINE NAMESPACE NAME}, where "-" is no name. */
  private static Hosts hosts(String... ranks) {
    List<Arrival> all = new ArrayList<>();
    for (String rank : ranks) {
      String[] words = rank.split(" ");
      int number = all.size();
      ProcessName process = new ProcessName(100 + number, 1, Long.parseLong(words[1]));
      String named = words[2].equals("-") ? "" : words[2];
      all.add(
          new Arrival(
              number, "0.1.0", "sim", words[0], "m" + words[0], named, process, number + 1, "", ""));
    }
    return new Hosts(all);
  }

  @Test
  void ranksOfOneMachineAndNamespaceShareAHost() {
    Hosts one = hosts("7 1 -", "7 1 -", "7 1 -");
    assertThat(one.areSeveral()).isFalse();
    assertThat(one.numbers()).containsExactly(0, 0, 0);
    assertThat(one.cores()).isEqualTo(3);
    assertThat(Hosts.rank(one, 2)).isEqualTo("2");
  }

  @Test
  void hostsAreNumberedByTheirLowestRanks() {
    Hosts hosts = hosts("9 1 -", "7 1 -", "7 2 -", "9 1 -", "7 1 -");
    assertThat(hosts.areSeveral()).isTrue();
    assertThat(hosts.numbers()).containsExactly(0, 1, 2, 0, 1);
    assertThat(hosts.first(4).rank()).isEqualTo(1);
    assertThat(hosts.areTogether(0, 3)).isTrue();
    assertThat(hosts.areTogether(1, 2)).isFalse();
    assertThat(hosts.cores()).isEqualTo(3); // of rank 2's, the fewest
    assertThat(Hosts.rank(hosts, 4)).isEqualTo("4 on host 1 (m7)");
  }

  @Test
  void namesTellHostsOfOneMachineApart() {
    Hosts hosts = hosts("7 1 a", "7 1 b", "7 1 a", "7 1 -");
    assertThat(hosts.numbers()).containsExactly(0, 1, 0, 2);
    assertThat(hosts.name(1)).isEqualTo("host 1 (b)");
    assertThat(hosts.name(3)).isEqualTo("host 2 (m7)");
  }

  @Test
  void oneNameOfSeveralMachinesIsRefused() {
    for (String other : new String[] {"9 1 a", "7 2 a"}) {
      Failure.assertFails(Native.WL_MISMATCH, () -> hosts("7 1 a", "7 1 b", other))
          .contains("ranks 0 and 2 both have WINDLASS_HOST 'a'");
    }
  }

  @Test
  void silenceIsANumberOfSeconds() {
    assertThat(Host.of(Map.of())).isEqualTo(new Host("", 2_000_000_000L));
    Map<String, String> set = Map.of("WINDLASS_HOST", "a.b-7", "WINDLASS_HOST_SILENCE", "0.75");
    assertThat(Host.of(set)).isEqualTo(new Host("a.b-7", 750_000_000));
    assertThat(Host.of(Map.of("WINDLASS_HOST_SILENCE", "0")).silenceNs()).isZero();
  }
}
