// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
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
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.job.JobThreads;
import org.windlass.job.Role;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.testing.RandomSeeds;

/**
 * Transfers of tensors that move over links: what both sides have to agree on, and those of two
 * links, which move as one.
 */
@Timeout(180)
class LinkTransferBuilderTest {
  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  @Test
  void whatSidesDisagreeOnIsNamedOnBoth() throws Exception {
    List<String> said = new ArrayList<>();
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          try (Link link = job.connect("policy", role, SOON)) {
            Tensor own = Tensor.allocate(DType.F32, 12, 5);
            LinkTransferBuilder builder =
                role == SOURCE
                    ? link.transferBuilder().add("w", SHAPE, own, ALONE)
                    : link.transferBuilder().into("v", SHAPE, own, ALONE);
            Throwable refused = catchThrowable(() -> builder.register(SOON));
            assertThat(refused).isInstanceOf(MismatchException.class);
            synchronized (said) {
              said.add(refused.getMessage());
            }
            // The link goes on.
            LinkTransferBuilder next =
                role == SOURCE
                    ? link.transferBuilder().add("w", SHAPE, own, ALONE)
                    : link.transferBuilder().into("w", SHAPE, own, ALONE);
            next.register(SOON).close();
          }
        };
    JobThreads.end(jobs.start("trainer", 1, body), jobs.start("inference", 1, body));
    assertThat(said).hasSize(2);
    assertThat(said.get(0)).isEqualTo(said.get(1)).contains("rank 1 is job 'inference'");
  }

  @Test
  void aBatchOverTwoLinksMovesAsOne() throws Exception {
    CountDownLatch half = new CountDownLatch(2);
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          int rank = job.communicator().rank();
          try (Link policy = job.connect("policy", role, SOON);
              Link critic = job.connect("critic", role, SOON)) {
            Tensor first = allocate(ROWS, rank);
            Tensor second = allocate(ROWS, rank);
            if (role == SOURCE) {
              first.copyFrom(part(ROWS, rank, 1));
              second.copyFrom(part(ROWS, rank, 1));
              try (var both =
                  policy
                      .transferBuilder()
                      .add("p", SHAPE, first, ROWS)
                      .and(critic)
                      .add("c", SHAPE, second, ROWS)
                      .register(SOON)) {
                both.send(1, SOON);
                first.copyFrom(part(ROWS, rank, 2));
                half.await();
                critic.communicator().abort("no critic today");
                assertThat(catchThrowable(() -> both.send(2, SOON)))
                    .isInstanceOf(WindlassException.class);
              }
            } else {
              try (var both =
                  policy
                      .transferBuilder()
                      .and(critic)
                      .into("c", SHAPE, second, ROWS)
                      .and(policy)
                      .into("p", SHAPE, first, ROWS)
                      .register(SOON)) {
                assertThat(both.receive(SOON)).isEqualTo(1);
                half.countDown();
                assertThat(catchThrowable(() -> both.receive(SOON)))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("no critic today");
                assertThat(both.version()).hasValue(1);
                for (String name : List.of("p", "c")) {
                  requirePart(both.tensor(name), ROWS, rank, 1);
                }
              }
            }
          }
        };
    JobThreads.end(jobs.start("trainer", 2, body), jobs.start("inference", 2, body));
  }

  /** The followers of either link are different jobs, of which one waits and the other doesn't. */
  @Test
  void aVersionMovesOverAllLinksOrNone() throws Exception {
    CountDownLatch late = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (Link first = job.connect("first", SOURCE, SOON);
                  Link second = job.connect("second", SOURCE, SOON);
                  Tensor own = allocate(ALONE, 0);
                  Tensor other = allocate(ALONE, 0);
                  LinkTransfer both =
                      first
                          .transferBuilder()
                          .add("w", SHAPE, own, ALONE)
                          .and(second)
                          .add("v", SHAPE, other, ALONE)
                          .register(SOON)) {
                own.copyFrom(part(ALONE, 0, 1));
                assertThatThrownBy(() -> both.send(1, Duration.ofSeconds(2)))
                    .isInstanceOf(DeadlineExceededException.class)
                    .hasMessageContaining("send on link 'second'")
                    .hasMessageContaining("nothing moved");
                assertThat(both.trySend(1, Duration.ofMillis(100))).isFalse();
                late.countDown();
                own.copyFrom(part(ALONE, 0, 2));
                other.copyFrom(part(ALONE, 0, 2));
                both.send(2, SOON);
              }
            });
    JobThreads.Body receives =
        job -> {
          boolean isFirst = job.name().equals("first");
          try (Link link = job.connect(job.name(), TARGET, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.transferBuilder().into(isFirst ? "w" : "v", SHAPE, own, ALONE)
                      .register(SOON)) {
            if (!isFirst) {
              late.await();
            }
            assertThat(transfer.receive(SOON)).isEqualTo(2);
            requirePart(transfer.tensor(isFirst ? "w" : "v"), ALONE, 0, 2);
          }
        };
    JobThreads.end(source, jobs.start("first", 1, receives), jobs.start("second", 1, receives));
  }

  /** All sides often miss their deadlines. Each receiver gets each version that was sent, once. */
  @RandomSeeds(value = 3, inLong = 30)
  void receiversOfDifferentLinksGetTheSameVersions(long seed) throws Exception {
    List<Long> sent = new ArrayList<>();
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              Random random = new Random(seed);
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
                for (long version = 1; version <= 60; version++) {
                  own.copyFrom(part(ALONE, 0, version));
                  Thread.sleep(random.nextInt(4));
                  if (both.trySend(version, Duration.ofMillis(5 + random.nextInt(30)))) {
                    sent.add(version);
                  }
                }
                both.finish(SOON);
              }
            });
    Map<String, List<Long>> received = new ConcurrentHashMap<>();
    JobThreads.Body receives =
        job -> {
          Random random = new Random(seed + job.name().length());
          List<Long> versions = new ArrayList<>();
          received.put(job.name(), versions);
          try (Link link = job.connect(job.name(), TARGET, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.transferBuilder().into(job.name(), SHAPE, own, ALONE).register(SOON)) {
            while (!transfer.isFinished()) {
              Thread.sleep(random.nextInt(3));
              transfer
                  .tryReceive(Duration.ofMillis(1 + random.nextInt(4)))
                  .ifPresent(
                      version -> {
                        versions.add(version);
                        requirePart(transfer.tensor(job.name()), ALONE, 0, version);
                      });
            }
          }
        };
    JobThreads.end(source, jobs.start("first", 1, receives), jobs.start("second", 1, receives));
    assertThat(sent).isNotEmpty();
    assertThat(received).allSatisfy((job, versions) -> assertThat(versions).isEqualTo(sent));
  }

  /** The sources of either link are different jobs, of which one sends and the other is late. */
  @Test
  void aVersionArrivesOverAllLinksOrNone() throws Exception {
    CountDownLatch late = new CountDownLatch(3);
    CountDownLatch done = new CountDownLatch(2);
    JobThreads.Body sends =
        job -> {
          try (Link link = job.connect(job.name(), SOURCE, SOON);
              Tensor own = allocate(ALONE, 0).copyFrom(part(ALONE, 0, 1));
              LinkTransfer transfer =
                  link.transferBuilder().add(job.name(), SHAPE, own, ALONE).register(SOON)) {
            boolean isFirst = job.name().equals("first");
            if (isFirst) {
              assertThat(transfer.trySend(1, Duration.ofSeconds(2))).isFalse();
              late.countDown();
            }
            late.await();
            transfer.send(1, SOON);
            if (isFirst) {
              assertThatThrownBy(() -> transfer.send(2, SOON))
                  .isInstanceOf(MismatchException.class)
                  .hasMessageContaining("version 3; nothing has moved");
            } else {
              assertThat(transfer.trySend(3, Duration.ofSeconds(3))).isFalse();
            }
            done.countDown();
            done.await();
          }
        };
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              int rank = job.communicator().rank();
              try (Link first = job.connect("first", TARGET, SOON);
                  Link second = job.connect("second", TARGET, SOON);
                  LinkTransfer transfer =
                      first
                          .transferBuilder()
                          .into("first", SHAPE, allocate(ROWS, rank), ROWS)
                          .and(second)
                          .into("second", SHAPE, allocate(ROWS, rank), ROWS)
                          .inPlace()
                          .register(SOON)) {
                assertThat(transfer.tryReceive(Duration.ofSeconds(1))).isEmpty();
                late.countDown();
                assertThat(transfer.tryReceive(SOON)).hasValue(1);
                requirePart(transfer.tensor("first"), ROWS, rank, 1);
                requirePart(transfer.tensor("second"), ROWS, rank, 1);
                assertThatThrownBy(() -> transfer.receive(SOON))
                    .isInstanceOf(MismatchException.class);
                requirePart(transfer.tensor("first"), ROWS, rank, 1); // nothing has moved
                assertThat(first.communicator().failure()).isEmpty();
                done.await();
                assertThat(second.communicator().failure()).isEmpty();
              }
            });
    JobThreads.end(jobs.start("first", 1, sends), jobs.start("second", 1, sends), target);
  }

  @Test
  void whatABatchOverLinksRefuses() {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            try (Link there = Link.open(comm, "a", one, one.at(1));
                Link same = Link.open(comm, "a", one, one.at(1));
                Link back = Link.open(comm, "b", one.at(1), one);
                Link also = Link.open(comm, "c", one, one.at(1))) {
              LinkTransferBuilder builder = there.transferBuilder();
              assertThatThrownBy(() -> builder.and(same))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("of the same name");
              assertThatThrownBy(() -> builder.and(back))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("another side");
              Tensor own = Tensor.allocate(DType.F32, SHAPE);
              if (there.sends()) {
                Layout layout = one.layout(Placement.replicate());
                builder.add("w", SHAPE, own, layout).and(also);
                assertThatThrownBy(() -> builder.add("w", SHAPE, own, layout))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("a tensor belongs to one link");
                assertThatThrownBy(() -> builder.add("v", SHAPE, own))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("has no layout of its own");
              }
              comm.barrier();
            }
          });
    }
  }
}
