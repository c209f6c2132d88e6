// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobThreads.SOON;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.error.AbortedException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.job.JobThreads;

/** Transfers over several links, of which one disagrees, ends or hangs. */
@Timeout(180)
class SeveralLinksTest {
  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  /** The sources of either link offer different versions, the higher one over the first link. */
  @Test
  void noVersionMovesIfSourcesOfLinksOfferSeveral() throws Exception {
    CountDownLatch seen = new CountDownLatch(1);
    LinkGraph.run(
        jobs,
        "S1>first>R S2>second>R",
        job -> 1,
        (job, end) -> {
          LinkTransfer transfer = end.transfer;
          switch (job) {
            case "S1" -> {
              for (int i = 0; i < 2; i++) {
                assertThatThrownBy(() -> transfer.send(3, SOON))
                    .isInstanceOf(MismatchException.class)
                    .hasMessageContaining("version 2; nothing has moved");
              }
            }
            case "S2" -> {
              seen.await();
              assertThat(transfer.trySend(2, Duration.ofSeconds(3))).isFalse();
            }
            default -> {
              while (!end.first().isVersionOffered()) {
                Thread.sleep(1);
              }
              assertThat(transfer.isVersionOffered()).isFalse(); // over the second link
              seen.countDown();
              assertThatThrownBy(() -> transfer.receive(SOON))
                  .isInstanceOf(MismatchException.class);
              assertThatThrownBy(() -> transfer.receive(3, SOON))
                  .isInstanceOf(MismatchException.class);
              assertThat(transfer.version()).isEmpty();
            }
          }
          assertThat(end.links.keySet()).noneMatch(end::hasEnded);
        });
  }

  /** A version has moved over the first link when the receivers of the second one refuse it. */
  @Test
  void aLinkEndsThatRefusesAVersionWhichOthersHave() throws Exception {
    LinkGraph.run(
        jobs,
        "S>first>R1 S>second>R2",
        job -> 1,
        (job, end) -> {
          LinkTransfer transfer = end.transfer;
          if (end.sends) {
            end.fill(1);
            transfer.send(1, SOON);
            end.fill(2);
            assertThatThrownBy(() -> transfer.send(2, SOON)).isInstanceOf(MismatchException.class);
            end.fill(3);
            assertThatThrownBy(() -> transfer.send(3, SOON)).isInstanceOf(AbortedException.class);
            assertThat(end.hasEnded("first")).isFalse();
            return;
          }
          assertThat(transfer.receive(SOON)).isEqualTo(1);
          if (job.equals("R1")) {
            assertThat(transfer.receive(SOON)).isEqualTo(2);
            assertThat(transfer.tryReceive(Duration.ofMillis(100))).isEmpty();
          } else {
            assertThatThrownBy(() -> transfer.receive(9, SOON))
                .isInstanceOf(WindlassException.class);
            assertThatThrownBy(() -> transfer.receive(SOON))
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("send of version 2 on link 'second'");
          }
          end.requireHas(job.equals("R1") ? 2 : 1);
        });
  }

  /** The second link ends after its version was offered, and the first one's was confirmed. */
  @Test
  void aVersionIsTakenBackIfAnotherLinkEnds() throws Exception {
    LinkGraph.run(
        jobs,
        "S>first>R1 S>second>R2",
        job -> 1,
        (job, end) -> {
          switch (job) {
            case "S" ->
                assertThatThrownBy(() -> end.transfer.send(1, Duration.ofSeconds(3)))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("no second today");
            case "R1" ->
                assertThat(end.transfer.tryReceive(Duration.ofSeconds(4))).isEmpty();
            default -> {
              Handover handover = end.first().handover();
              handover.ask();
              while (!handover.isOffered()) {
                Thread.sleep(1);
              }
              Thread.sleep(300); // the receivers of the first link confirm
              end.first().link().communicator().abort("no second today");
            }
          }
          if (!job.equals("R2")) {
            assertThat(end.hasEnded("first")).isFalse();
          }
        });
  }

  /** The receivers of the last link hang after they have asked. Only that link ends. */
  @Test
  void aHangingReceiverEndsItsOwnLinkOnly() throws Exception {
    CountDownLatch done = new CountDownLatch(5);
    LinkGraph.run(
        jobs,
        "S>0>R0 S>1>R1 S>2>R2",
        job -> job.equals("S") ? 2 : 1,
        (job, end) -> {
          if (end.sends) {
            assertThatThrownBy(() -> end.transfer.trySend(1, Duration.ofMillis(200)))
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("link '2'")
                .hasMessageContaining("see whether rank 2 is stopped");
          } else if (job.equals("R2")) {
            end.first().handover().ask();
          } else {
            assertThat(end.transfer.tryReceive(Duration.ofSeconds(5))).isEmpty();
          }
          done.countDown();
          done.await();
          assertThat(end.links.keySet()).allMatch(name -> end.hasEnded(name) == name.equals("2"));
        });
  }
}
