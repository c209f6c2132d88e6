// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobThreads.SOON;

import java.time.Duration;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.error.AbortedException;
import org.windlass.job.JobThreads;

/** Jobs of which several send to several others, each by one transfer over all its links. */
@Timeout(120)
class LinkGraphTest {
  private static final long VERSIONS = 100;
  private static final Duration MOMENT = Duration.ofNanos(300_000);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  /**
   * Every version moves over all links of every transfer, and no link ends. Targets whose names
   * begin with Q poll. They withdraw their first request for each version once it is offered.
   */
  @ParameterizedTest
  @CsvSource({
    "S>a>Q1 S>b>Q2 S>c>R, 1",
    "S>a>R S>b>R S>c>Q, 1",
    "S1>a>R S2>b>R S2>c>Q, 1",
    "S1>b>R S2>a>R S2>c>Q, 2",
    "S1>a>R S2>b>R S3>c>R S2>d>Q1 S3>e>Q2, 1",
    "S1>a>P S1>b>R S2>c>R S2>d>Q, 1",
    "S1>a>Q1 S1>b>R S2>c>R S2>d>Q2, 1",
    "S1>d>Q1 S1>c>R S2>b>R S2>a>Q2, 1",
    "S1>a>R1 S1>b>R2 S2>c>R1 S2>d>R2 S2>e>Q, 1"
  })
  void noLinkEnds(String graph, int ranks) throws Exception {
    LinkGraph.run(
        jobs,
        graph,
        job -> ranks,
        (job, end) -> {
          boolean polls = job.startsWith("Q");
          for (long version = 1; version <= VERSIONS; version++) {
            if (end.sends) {
              end.fill(version);
              end.transfer.send(version, SOON);
              continue;
            }
            if (polls && end.rank == 0) {
              Handover handover = end.first().handover();
              requestOne(handover);
              handover.settle(false);
            }
            OptionalLong received = OptionalLong.empty();
            while (received.isEmpty()) {
              received = end.transfer.tryReceive(polls ? MOMENT : SOON);
            }
            assertThat(received).hasValue(version);
            end.requireHas(version);
          }
          assertThat(end.links.keySet()).noneMatch(end::hasEnded);
        });
  }

  private static void requestOne(Handover handover) {
    handover.ask();
    while (!handover.isOffered()) {
      Thread.yield();
    }
  }

  /** A target closes its link after it was offered a version. Only that link ends. */
  @Test
  void aTargetThatClosesEndsItsOwnLinkOnly() throws Exception {
    LinkGraph.run(
        jobs,
        "S1>a>R S2>b>R S2>c>Q",
        job -> 1,
        (job, end) -> {
          Duration limit = Duration.ofSeconds(2);
          switch (job) {
            case "S1" -> assertThat(end.transfer.trySend(1, limit)).isFalse();
            case "R" -> assertThat(end.transfer.tryReceive(limit)).isEmpty();
            case "S2" ->
                assertThatThrownBy(() -> end.transfer.send(1, limit))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("on link 'c'");
            default -> {
              requestOne(end.first().handover());
              end.links.get("c").close();
            }
          }
          assertThat(end.links.keySet())
              .allMatch(name -> end.hasEnded(name) == name.equals("c"));
        });
  }
}
