// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobEnd.requirePart;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.job.JobThreads;
import org.windlass.plan.TransferMode;

/** Transfers over several links, of which one disagrees, ends or hangs. */
@Timeout(180)
class SeveralLinksTest {
  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  /** The sources of either link offer different versions, the higher one over the first link. */
  @Test
  void noVersionMovesIfSourcesOfLinksOfferSeveral() throws Exception {
    CountDownLatch seen = new CountDownLatch(1);
    CountDownLatch done = new CountDownLatch(3);
    JobThreads.Body sends =
        job -> {
          boolean isFirst = job.name().equals("first");
          try (Link link = job.connect(job.name(), SOURCE, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.transferBuilder().add(job.name(), SHAPE, own, ALONE).register(SOON)) {
            if (isFirst) {
              for (int i = 0; i < 2; i++) {
                assertThatThrownBy(() -> transfer.send(3, SOON))
                    .isInstanceOf(MismatchException.class)
                    .hasMessageContaining("version 2; nothing has moved");
              }
            } else {
              seen.await();
              assertThat(transfer.trySend(2, Duration.ofSeconds(3))).isFalse();
            }
            assertThat(link.communicator().failure()).isEmpty();
            done.countDown();
            done.await();
          }
        };
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              try (Link first = job.connect("first", TARGET, SOON);
                  Link second = job.connect("second", TARGET, SOON);
                  LinkTransfer transfer =
                      first
                          .transferBuilder()
                          .into("first", SHAPE, allocate(ALONE, 0), ALONE)
                          .and(second)
                          .into("second", SHAPE, allocate(ALONE, 0), ALONE)
                          .register(SOON)) {
                while (!TakenBack.part(transfer).isVersionOffered()) {
                  Thread.sleep(1);
                }
                assertThat(transfer.isVersionOffered()).isFalse(); // over the second link
                seen.countDown();
                assertThatThrownBy(() -> transfer.receive(SOON))
                    .isInstanceOf(MismatchException.class);
                assertThatThrownBy(() -> transfer.receive(3, SOON))
                    .isInstanceOf(MismatchException.class);
                assertThat(transfer.version()).isEmpty();
                done.countDown();
                done.await();
              }
            });
    JobThreads.end(jobs.start("first", 1, sends), jobs.start("second", 1, sends), target);
  }

  /** A version has moved over the first link when the receivers of the second one refuse it. */
  @Test
  void aLinkEndsThatRefusesAVersionWhichOthersHave() throws Exception {
    CountDownLatch done = new CountDownLatch(3);
    JobThreads.Body receives =
        job -> {
          boolean isFirst = job.name().equals("first");
          try (Link link = job.connect(job.name(), TARGET, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.transferBuilder().into(job.name(), SHAPE, own, ALONE).register(SOON)) {
            assertThat(transfer.receive(SOON)).isEqualTo(1);
            if (isFirst) {
              assertThat(transfer.receive(SOON)).isEqualTo(2);
              assertThat(transfer.tryReceive(Duration.ofMillis(100))).isEmpty();
            } else {
              assertThatThrownBy(() -> transfer.receive(9, SOON))
                  .isInstanceOf(WindlassException.class);
              assertThatThrownBy(() -> transfer.receive(SOON))
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("send of version 2 on link 'second'");
            }
            requirePart(transfer.tensor(job.name()), ALONE, 0, isFirst ? 2 : 1);
            done.countDown();
            done.await();
          }
        };
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (Link first = job.connect("first", SOURCE, SOON);
                  Link second = job.connect("second", SOURCE, SOON);
                  Tensor own = allocate(ALONE, 0);
                  LinkTransfer both =
                      first
                          .transferBuilder()
                          .defaultMode(TransferMode.STAGED)
                          .add("first", SHAPE, own, ALONE)
                          .and(second)
                          .add("second", SHAPE, own, ALONE)
                          .register(SOON)) {
                own.copyFrom(part(ALONE, 0, 1));
                both.send(1, SOON);
                own.copyFrom(part(ALONE, 0, 2));
                assertThatThrownBy(() -> both.send(2, SOON))
                    .isInstanceOf(MismatchException.class);
                own.copyFrom(part(ALONE, 0, 3));
                assertThatThrownBy(() -> both.send(3, SOON)).isInstanceOf(AbortedException.class);
                assertThat(first.communicator().failure()).isEmpty();
                done.countDown();
                done.await();
              }
            });
    JobThreads.end(jobs.start("first", 1, receives), jobs.start("second", 1, receives), source);
  }

  /** The second link ends after its version was offered, and the first one's was confirmed. */
  @Test
  void aVersionIsTakenBackIfAnotherLinkEnds() throws Exception {
    CountDownLatch done = new CountDownLatch(3);
    JobThreads.Body receives =
        job -> {
          try (Link link = job.connect(job.name(), TARGET, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.transferBuilder().into(job.name(), SHAPE, own, ALONE).register(SOON)) {
            if (job.name().equals("first")) {
              assertThat(transfer.tryReceive(Duration.ofSeconds(4))).isEmpty();
              assertThat(link.communicator().failure()).isEmpty();
            } else {
              Handover handover = TakenBack.part(transfer).handover();
              handover.ask();
              while (!handover.isOffered()) {
                Thread.sleep(1);
              }
              Thread.sleep(300); // the receivers of the first link confirm
              link.communicator().abort("no second today");
            }
            done.countDown();
            done.await();
          }
        };
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (Link first = job.connect("first", SOURCE, SOON);
                  Link second = job.connect("second", SOURCE, SOON);
                  Tensor own = allocate(ALONE, 0);
                  LinkTransfer both =
                      first
                          .transferBuilder()
                          .add("first", SHAPE, own, ALONE)
                          .and(second)
                          .add("second", SHAPE, own, ALONE)
                          .register(SOON)) {
                assertThatThrownBy(() -> both.send(1, Duration.ofSeconds(3)))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("no second today");
                assertThat(first.communicator().failure()).isEmpty();
                done.countDown();
                done.await();
              }
            });
    JobThreads.end(jobs.start("first", 1, receives), jobs.start("second", 1, receives), source);
  }

  /** The receivers of the last link hang after they have asked. Only that link ends. */
  @Test
  void aHangingReceiverEndsItsOwnLinkOnly() throws Exception {
    int count = 3;
    CountDownLatch done = new CountDownLatch(count + 2);
    CountDownLatch seen = new CountDownLatch(count);
    JobThreads.Body receives =
        job -> {
          boolean hangs = job.name().equals("2");
          try (Link link = job.connect(job.name(), TARGET, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.transferBuilder().into(job.name(), SHAPE, own, ALONE).register(SOON)) {
            if (hangs) {
              TakenBack.part(transfer).handover().ask();
            } else {
              assertThat(transfer.tryReceive(Duration.ofSeconds(5))).isEmpty();
            }
            done.countDown();
            done.await();
            assertThat(link.communicator().failure().isPresent()).isEqualTo(hangs);
            seen.countDown();
            seen.await();
          }
        };
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              int rank = job.communicator().rank();
              List<Link> links = new ArrayList<>();
              for (int i = 0; i < count; i++) {
                links.add(job.connect("" + i, SOURCE, SOON));
              }
              LinkTransferBuilder builder = links.get(0).transferBuilder();
              for (Link link : links) {
                builder.and(link).add(link.name(), SHAPE, allocate(ROWS, rank), ROWS);
              }
              LinkTransfer all = builder.register(SOON);
              assertThatThrownBy(() -> all.trySend(1, Duration.ofMillis(200)))
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("link '2'")
                  .hasMessageContaining("see whether rank 2 is stopped");
              done.countDown();
              done.await();
              seen.await();
              links.forEach(Link::close);
            });
    JobThreads.end(
        source, jobs.start("0", 1, receives), jobs.start("1", 1, receives),
        jobs.start("2", 1, receives));
  }
}
