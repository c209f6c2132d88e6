// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.redistribute.JobEnd.ALONE;
import static org.windlass.redistribute.JobEnd.COLUMNS;
import static org.windlass.redistribute.JobEnd.ROWS;
import static org.windlass.redistribute.JobEnd.SHAPE;
import static org.windlass.redistribute.JobEnd.allocate;
import static org.windlass.redistribute.JobEnd.part;
import static org.windlass.redistribute.JobThreads.SOON;
import static org.windlass.redistribute.Role.SOURCE;
import static org.windlass.redistribute.Role.TARGET;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.AbortedException;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.DeadlineExceededException;
import org.windlass.InvalidArgumentException;
import org.windlass.LocalGroup;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.WindlassException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.testing.RandomSeeds;

/** Jobs that meet, here threads of one JVM: what moves, what waits, and what is refused. */
@Timeout(180)
class JobTest {
  private static final Duration MOMENT = Duration.ofMillis(700);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void jobsMeetInAnyOrder(boolean sourceFirst) throws Exception {
    CountDownLatch first = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              wait(sourceFirst ? null : first);
              if (sourceFirst) {
                first.countDown();
              }
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                assertThat(end.link().sends()).isTrue();
                for (long version = 1; version <= 5; version++) {
                  end.send(version, SOON);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              wait(sourceFirst ? first : null);
              if (!sourceFirst) {
                first.countDown();
              }
              try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                assertThat(end.transfer().version()).isEmpty();
                for (long version = 1; version <= 5; version++) {
                  assertThat(end.receive(SOON)).isEqualTo(version);
                }
              }
            });
    JobThreads.end(source, target);
  }

  /** Until it is open, and some time more; null is open. */
  private static void wait(CountDownLatch latch) throws InterruptedException {
    if (latch != null) {
      latch.await();
      Thread.sleep(200);
    }
  }

  @Test
  void aSideThatWaitsInVainGoesOn() throws Exception {
    CountDownLatch skipped = new CountDownLatch(2);
    CountDownLatch waited = new CountDownLatch(3);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                assertThatThrownBy(() -> end.send(1, MOMENT))
                    .isInstanceOf(DeadlineExceededException.class)
                    .hasMessageContaining("send on link 'policy' (ranks 0 to 1 are job 'trainer'")
                    .hasMessageContaining("the receivers have not asked");
                assertThatThrownBy(() -> end.send(1, Duration.ofNanos(1)))
                    .isInstanceOf(DeadlineExceededException.class);
                assertThat(end.link().communicator().failure()).isEmpty();
                skipped.countDown();
                end.send(2, SOON);
                waited.await();
                end.send(3, SOON);
              }
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                skipped.await();
                assertThat(end.transfer().newest()).isPresent();
                assertThat(end.receive(SOON)).isEqualTo(2);
                assertThatThrownBy(() -> end.receive(MOMENT))
                    .isInstanceOf(DeadlineExceededException.class)
                    .hasMessageContaining("the senders have had no version");
                end.requireHas(2);
                waited.countDown();
                assertThat(end.receive(SOON)).isEqualTo(3);
              }
            });
    JobThreads.end(source, target);
  }

  /** Both sides come when they like, with deadlines that they often miss. */
  @RandomSeeds(value = 3, inLong = 30)
  void versionsThatAreSkippedLeaveNoTrace(long seed) throws Exception {
    int rounds = 60;
    AtomicLong sent = new AtomicLong();
    AtomicLong received = new AtomicLong();
    AtomicInteger ended = new AtomicInteger();
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              Random random = new Random(seed);
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                for (long version = 1; version <= rounds; version++) {
                  Thread.sleep(random.nextInt(6));
                  try {
                    end.send(version, Duration.ofMillis(10 + random.nextInt(30)));
                    sent.addAndGet(end.rank() == 0 ? 1 : 0);
                  } catch (DeadlineExceededException e) {
                    assertThat(end.link().communicator().failure()).isEmpty();
                  }
                }
                end.send(rounds + 1, SOON);
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              Random random = new Random(seed + 1);
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                long last = 0;
                while (last <= rounds) {
                  Thread.sleep(random.nextInt(6));
                  try {
                    long version = end.receive(Duration.ofMillis(1 + random.nextInt(15)));
                    assertThat(version).isGreaterThan(last);
                    last = version;
                    received.addAndGet(end.rank() == 0 ? 1 : 0);
                  } catch (DeadlineExceededException e) {
                    assertThat(end.link().communicator().failure()).isEmpty();
                    if (last > 0) {
                      end.requireHas(last);
                    }
                  }
                }
              }
              ended.incrementAndGet();
            });
    JobThreads.end(source, target);
    assertThat(received.get()).isEqualTo(sent.get() + 1);
    assertThat(ended).hasValue(2);
  }

  @Test
  void aReceiverSeesWhatIsThere() throws Exception {
    CountDownLatch looked = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ALONE)) {
                end.send(7, SOON);
                looked.await();
                try (LinkTransfer other =
                    end.link().batch().add("v", SHAPE, end.tensor(), ALONE).register(SOON)) {
                  other.send(8, SOON);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
                while (!end.transfer().isThere()) {
                  Thread.sleep(1);
                }
                assertThat(end.transfer().newest()).hasValue(7);
                assertThat(end.receive(SOON)).isEqualTo(7);
                assertThat(end.transfer().isThere()).isFalse();
                looked.countDown();
                try (Tensor own = allocate(ALONE, 0);
                    LinkTransfer other =
                        end.link().batch().into("v", SHAPE, own, ALONE).register(SOON)) {
                  while (!other.isThere()) {
                    Thread.sleep(1);
                  }
                  assertThat(end.transfer().isThere()).isFalse(); // it is the other's
                  assertThat(other.newest()).hasValue(8);
                  assertThat(other.receive(SOON)).isEqualTo(8);
                }
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void sendAndReceiveMayBeFutures() throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.tensor().copyFrom(part(ROWS, end.rank(), 1));
                end.transfer().sendAsync(1, SOON).await(SOON);
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                assertThat(end.transfer().receiveAsync(SOON).toCompletableFuture().get())
                    .isEqualTo(1);
                end.requireHas(1);
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void aSideThatIsClosedMeetsAgain() throws Exception {
    int meetings = 4;
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              for (long meeting = 1; meeting <= meetings; meeting++) {
                try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                  assertThat(end.link().memo().computed()).isEqualTo(1);
                  end.send(meeting, SOON);
                  long next = meeting;
                  Throwable lost = catchThrowable(() -> end.send(100 + next, SOON));
                  assertThat(lost).isInstanceOf(AbortedException.class);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              for (long meeting = 1; meeting <= meetings; meeting++) {
                try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                  assertThat(end.link().memo().computed()).isEqualTo(1); // for both halves
                  assertThat(end.receive(SOON)).isEqualTo(meeting);
                }
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void aMeetingGoesOnWhereTheJobEndsThatHasTheStore() throws Exception {
    CountDownLatch there = new CountDownLatch(1);
    CountDownLatch waits = new CountDownLatch(2);
    var owner =
        jobs.start(
            "owner",
            1,
            job -> {
              there.countDown();
              waits.await();
              Thread.sleep(200); // so that the other is at its store, as a rule
            });
    there.await();
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              waits.countDown();
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
              }
            });
    JobThreads.end(owner);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void whoDoesNotComeIsSaid() throws Exception {
    var alone =
        jobs.start(
            "inference",
            2,
            job -> {
              assertThatThrownBy(() -> job.meet("policy", TARGET, MOMENT))
                  .isInstanceOf(DeadlineExceededException.class)
                  .hasMessageContaining("meet of pair 'policy' as target")
                  .hasMessageContaining("no job sends it here yet");
              assertThatThrownBy(() -> job.meet("policy", SOURCE, MOMENT))
                  .isInstanceOf(DeadlineExceededException.class)
                  .hasMessageContaining("no job receives it here");
            });
    JobThreads.end(alone);
  }

  @Test
  void twoJobsInOnePlaceAreNamed() throws Exception {
    CountDownLatch there = new CountDownLatch(2);
    CountDownLatch done = new CountDownLatch(2);
    var first =
        jobs.start(
            "trainer",
            1,
            job -> {
              Throwable late = catchThrowable(() -> job.meet("policy", SOURCE, MOMENT));
              assertThat(late).isInstanceOf(DeadlineExceededException.class);
              there.countDown();
              done.await();
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              there.countDown();
              catchThrowable(() -> job.meet("other", TARGET, SOON.dividedBy(10)));
              done.await();
            });
    there.await();
    var second =
        jobs.start(
            "another",
            1,
            job -> {
              assertThatThrownBy(() -> job.meet("policy", SOURCE, MOMENT))
                  .isInstanceOf(DeadlineExceededException.class)
                  .hasMessageContaining("another sends it already: job 'trainer' (1 rank, rank 0");
              done.countDown();
            });
    var namesake =
        jobs.start(
            "inference",
            1,
            job -> {
              Thread.sleep(500);
              assertThatThrownBy(() -> job.meet("other", TARGET, MOMENT))
                  .isInstanceOf(DeadlineExceededException.class)
                  .hasMessageContaining("job 'inference' (1 rank, rank 0 is process")
                  .hasMessageContaining("give each job a name of its own");
              done.countDown();
            });
    JobThreads.end(second, namesake, first, target);
  }

  /** Each would wait for the other job, which has not come, until its deadline. */
  @Test
  void ranksThatCallItOtherwiseAreNamedAtOnceAndGoOn() throws Exception {
    CountDownLatch refused = new CountDownLatch(2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              boolean isFirst = job.communicator().rank() == 0;
              Role role = isFirst ? SOURCE : TARGET;
              String pair = isFirst ? "policy" : "critic";
              Layout layout = isFirst ? ROWS : Layout.parse("3:R"); // which has a rank too many
              requireOtherwise(
                  () -> job.meet("policy", role, SOON),
                  "rank 0 of job 'trainer' calls meet of pair 'policy' as source, rank 1 of job"
                      + " 'trainer' calls meet of pair 'policy' as target");
              requireOtherwise(
                  () -> job.meet(pair, SOURCE, SOON),
                  "rank 1 of job 'trainer' calls meet of pair 'critic' as source");
              requireOtherwise(
                  () -> job.meet("policy", SOURCE, layout, SOON),
                  "rank 1 of job 'trainer' calls meet of pair 'policy' as source with layout "
                      + Layout.parse("3:R").qualified());
              requireOtherwise(
                  () -> {
                    if (isFirst) {
                      job.meet("policy", SOURCE, SOON);
                    } else {
                      job.open("policy", new Until(SOON.toNanos()), way -> List.of());
                    }
                  },
                  "rank 1 of job 'trainer' calls look for followers of pair 'policy'");
              refused.countDown();
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
              }
            });
    refused.await();
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
              }
            });
    JobThreads.end(source, target);
  }

  private static void requireOtherwise(ThrowingCallable call, String what) {
    assertThatThrownBy(call).isInstanceOf(MismatchException.class).hasMessageContaining(what);
  }

  @Test
  void sidesNameALayoutAtTheMeeting() throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              int rank = job.communicator().rank();
              try (Link link = job.meet("policy", SOURCE, ROWS, SOON)) {
                Tensor own = allocate(ROWS, rank).copyFrom(part(ROWS, rank, 3));
                try (var transfer = link.batch().add("w", SHAPE, own).register(SOON)) {
                  transfer.send(3, SOON);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              int rank = job.communicator().rank();
              assertThatThrownBy(() -> job.meet("policy", TARGET, Layout.parse("4:R"), SOON))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("holds rank 3; the job has ranks 0 to 2");
              assertThatThrownBy(() -> job.meet("policy", TARGET, Layout.parse("3:P"), SOON))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("holds Partial");
              try (Link link = job.meet("policy", TARGET, COLUMNS, SOON)) {
                Tensor own = allocate(COLUMNS, rank);
                try (var transfer = link.batch().into("w", SHAPE, own).register(SOON)) {
                  assertThat(transfer.receive(SOON)).isEqualTo(3);
                  float[] found = new float[(int) own.numel()];
                  transfer.tensor("w").copyTo(found);
                  assertThat(found).isEqualTo(part(COLUMNS, rank, 3));
                }
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void whatSidesDisagreeOnIsNamedOnBoth() throws Exception {
    List<String> said = new ArrayList<>();
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          try (Link link = job.meet("policy", role, SOON)) {
            Tensor own = Tensor.allocate(DType.F32, 12, 5);
            LinkBatch batch =
                role == SOURCE
                    ? link.batch().add("w", SHAPE, own, ALONE)
                    : link.batch().into("v", SHAPE, own, ALONE);
            Throwable refused = catchThrowable(() -> batch.register(SOON));
            assertThat(refused).isInstanceOf(MismatchException.class);
            synchronized (said) {
              said.add(refused.getMessage());
            }
            // The link goes on.
            LinkBatch next =
                role == SOURCE
                    ? link.batch().add("w", SHAPE, own, ALONE)
                    : link.batch().into("w", SHAPE, own, ALONE);
            next.register(SOON).close();
          }
        };
    JobThreads.end(jobs.start("trainer", 1, body), jobs.start("inference", 1, body));
    assertThat(said).hasSize(2);
    assertThat(said.get(0)).isEqualTo(said.get(1)).contains("rank 1 is job 'inference'");
  }

  @Test
  void aBatchOverTwoPairsMovesAsOne() throws Exception {
    CountDownLatch half = new CountDownLatch(2);
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          int rank = job.communicator().rank();
          try (Link policy = job.meet("policy", role, SOON);
              Link critic = job.meet("critic", role, SOON)) {
            Tensor first = allocate(ROWS, rank);
            Tensor second = allocate(ROWS, rank);
            if (role == SOURCE) {
              first.copyFrom(part(ROWS, rank, 1));
              second.copyFrom(part(ROWS, rank, 1));
              try (var both =
                  policy
                      .batch()
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
                      .batch()
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
                  float[] found = new float[(int) first.numel()];
                  both.tensor(name).copyTo(found);
                  assertThat(found).as(name).isEqualTo(part(ROWS, rank, 1));
                }
              }
            }
          }
        };
    JobThreads.end(jobs.start("trainer", 2, body), jobs.start("inference", 2, body));
  }

  /** The followers of either link are different jobs, of which one waits and the other doesn't. */
  @Test
  void whatHadMovedOverOneLinkIsSaid() throws Exception {
    CountDownLatch late = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (Link first = job.meet("first", SOURCE, SOON);
                  Link second = job.meet("second", SOURCE, SOON);
                  Tensor own = allocate(ALONE, 0);
                  Tensor other = allocate(ALONE, 0);
                  LinkTransfer both =
                      first
                          .batch()
                          .add("w", SHAPE, own, ALONE)
                          .and(second)
                          .add("v", SHAPE, other, ALONE)
                          .register(SOON)) {
                own.copyFrom(part(ALONE, 0, 1));
                assertThatThrownBy(() -> both.send(1, Duration.ofSeconds(2)))
                    .isInstanceOf(DeadlineExceededException.class)
                    .hasMessageContaining("send on link 'second'")
                    .hasMessageContaining("version 1 had moved over 'first' by then")
                    .hasMessageNotContaining("nothing moved");
                late.countDown();
                own.copyFrom(part(ALONE, 0, 2));
                other.copyFrom(part(ALONE, 0, 2));
                both.send(2, SOON);
              }
            });
    JobThreads.Body receives =
        job -> {
          boolean isFirst = job.name().equals("first");
          try (Link link = job.meet(job.name(), TARGET, SOON);
              Tensor own = allocate(ALONE, 0);
              LinkTransfer transfer =
                  link.batch().into(isFirst ? "w" : "v", SHAPE, own, ALONE).register(SOON)) {
            if (isFirst) {
              assertThat(transfer.receive(SOON)).isEqualTo(1);
            } else {
              late.await();
            }
            assertThat(transfer.receive(SOON)).isEqualTo(2);
            float[] found = new float[(int) own.numel()];
            transfer.tensor(isFirst ? "w" : "v").copyTo(found);
            assertThat(found).isEqualTo(part(ALONE, 0, 2));
          }
        };
    JobThreads.end(source, jobs.start("first", 1, receives), jobs.start("second", 1, receives));
  }

  @Test
  void aLinkHasTheOptionsOfItsSource() throws Exception {
    Duration deadline = Duration.ofSeconds(17);
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(deadline).withFirstSequence(4711);
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          try (Link link = job.meet("policy", role, SOON)) {
            Communicator both = link.communicator();
            assertThat(both.deadline()).isEqualTo(deadline);
            assertThat(job.communicator().deadline()).isEqualTo(SOON);
            assertThat(both.report().ranks().get(both.rank()).recent())
                .isNotEmpty()
                .allMatch(call -> call.sequence() - 4711 >= 0 && call.sequence() < 4800);
          }
        };
    JobThreads.end(
        jobs.start("trainer", 1, options, body), jobs.start("inference", 2, body));
  }

  @Test
  void whatABatchOverLinksRefuses() {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = Communicator.local(2)) {
      group.run(
          comm -> {
            try (Link there = Link.open(comm, "a", one, one.at(1));
                Link same = Link.open(comm, "a", one, one.at(1));
                Link back = Link.open(comm, "b", one.at(1), one);
                Link also = Link.open(comm, "c", one, one.at(1))) {
              LinkBatch batch = there.batch();
              assertThatThrownBy(() -> batch.and(same))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("of the same name");
              assertThatThrownBy(() -> batch.and(back))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("another side");
              Tensor own = Tensor.allocate(DType.F32, SHAPE);
              if (there.sends()) {
                Layout layout = one.layout(Placement.replicate());
                batch.add("w", SHAPE, own, layout).and(also);
                assertThatThrownBy(() -> batch.add("w", SHAPE, own, layout))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("a tensor is of one link");
                assertThatThrownBy(() -> batch.add("v", SHAPE, own))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("has no layout of its own");
              }
              comm.barrier();
            }
          });
    }
  }
}
