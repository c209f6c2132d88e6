// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.NotSerializableException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where the ranks of tests live, and what a test is told when they fail. */
@Timeout(120)
class RanksTest {
  @OnRanks(4)
  void ranksOfAProcessFollowOneAnother(Ranks ranks) {
    int each = 4 / ranks.launch().processes(4);
    boolean isInJvms = ranks.launch() != Launch.THREADS;
    long test = ProcessHandle.current().pid();
    ranks.run(
        comm -> {
          List<Object> processes = new ArrayList<>();
          comm.report().ranks().forEach(rank -> processes.add(rank.process()));
          for (int i = 0; i < 4; i++) {
            int of = i / each * each;
            assertThat(processes.get(i)).isEqualTo(processes.get(of));
            assertThat(Collections.frequency(processes, processes.get(i))).isEqualTo(each);
          }
          assertThat(ProcessHandle.current().pid() != test).isEqualTo(isInJvms);
        });
  }

  /** It fails on all, and the next test finds ranks again. */
  @Test
  void aFailureTellsWhatTheProcessesSaid() {
    Ranks ranks = new Ranks(Launch.PROCESSES, 2);
    assertThatThrownBy(
            () ->
                ranks.run(
                    comm -> {
                      if (comm.rank() == 1) {
                        System.out.println("I am rank 1");
                        throw new AssertionError("a wrong element");
                      }
                      comm.barrier();
                    }))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("I am rank 1")
        .hasMessageContaining("AssertionError: a wrong element");
    ranks.run(comm -> comm.barrier());
  }

  @Test
  void whatIsNoValueIsRefused() {
    Object shared = new Object();
    assertThatThrownBy(
            () -> new Ranks(Launch.PROCESSES, 2).run(comm -> assertThat(shared).isNotNull()))
        .hasRootCauseInstanceOf(NotSerializableException.class);
  }
}
