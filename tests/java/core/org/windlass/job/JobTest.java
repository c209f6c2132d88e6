// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.job.JobEnd.COLUMNS;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobEnd.requirePart;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.api.ThrowingConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.internal.Deadline;
import org.windlass.layout.Layout;
import org.windlass.link.Link;
import org.windlass.link.LinkTransferBuilder;

/** Jobs that connect, here threads of one JVM: who connects to whom, and what is refused. */
@Timeout(180)
class JobTest {
  private static final Duration MOMENT = Duration.ofMillis(700);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void jobsConnectInAnyOrder(boolean sourceFirst) throws Exception {
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

  /** Deadline it is open, and some time more; null is open. */
  private static void wait(CountDownLatch latch) throws InterruptedException {
    if (latch != null) {
      latch.await();
      Thread.sleep(200);
    }
  }

  @Test
  void aSideThatIsClosedConnectsAgain() throws Exception {
    int counts = 4;
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              for (long version = 1; version <= counts; version++) {
                try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                  assertThat(end.link().memo().computed()).isEqualTo(1);
                  end.send(version, SOON);
                  long next = version;
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
              for (long version = 1; version <= counts; version++) {
                try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                  assertThat(end.link().memo().computed()).isEqualTo(1); // for both halves
                  assertThat(end.receive(SOON)).isEqualTo(version);
                }
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void aConnectGoesOnWhereTheJobEndsThatHasTheStore() throws Exception {
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
              JobEnd.moveOne(job, TARGET, ROWS);
            });
    JobThreads.end(owner);
    var source = jobs.start("trainer", 2, job -> JobEnd.moveOne(job, SOURCE, ROWS));
    JobThreads.end(source, target);
  }

  @Test
  void whoDoesNotComeIsSaid() throws Exception {
    var alone =
        jobs.start(
            "inference",
            2,
            job -> {
              assertThatThrownBy(() -> job.connect("policy", TARGET, MOMENT))
                  .isInstanceOf(DeadlineExceededException.class)
                  .hasMessageContaining("connect to link 'policy' as target")
                  .hasMessageContaining("no job sends it here yet");
              assertThatThrownBy(() -> job.connect("policy", SOURCE, MOMENT))
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
              Throwable late = catchThrowable(() -> job.connect("policy", SOURCE, MOMENT));
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
              catchThrowable(() -> job.connect("other", TARGET, SOON.dividedBy(10)));
              done.await();
            });
    there.await();
    var second =
        jobs.start(
            "another",
            1,
            job -> {
              assertThatThrownBy(() -> job.connect("policy", SOURCE, MOMENT))
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
              assertThatThrownBy(() -> job.connect("other", TARGET, MOMENT))
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
              String linkName = isFirst ? "policy" : "critic";
              Layout layout = isFirst ? ROWS : Layout.parse("3:R"); // which has a rank too many
              requireOtherwise(
                  () -> job.connect("policy", role, SOON),
                  "rank 0 of job 'trainer' calls connect to link 'policy' as source, rank 1 of job"
                      + " 'trainer' calls connect to link 'policy' as target");
              requireOtherwise(
                  () -> job.connect(linkName, SOURCE, SOON),
                  "rank 1 of job 'trainer' calls connect to link 'critic' as source");
              requireOtherwise(
                  () -> job.connect("policy", SOURCE, layout, SOON),
                  "rank 1 of job 'trainer' calls connect to link 'policy' as source with layout "
                      + Layout.parse("3:R").qualified());
              requireOtherwise(
                  () -> {
                    if (isFirst) {
                      job.connect("policy", SOURCE, SOON);
                    } else {
                      job.requireSameSearch("policy", Deadline.of(SOON));
                    }
                  },
                  "rank 1 of job 'trainer' calls look for followers of link 'policy'");
              refused.countDown();
              JobEnd.moveOne(job, SOURCE, ROWS);
            });
    refused.await();
    var target = jobs.start("inference", 2, job -> JobEnd.moveOne(job, TARGET, ROWS));
    JobThreads.end(source, target);
  }

  /** The link counts the ranks of both jobs. */
  @Test
  void layoutsAreNamedAsTheirJobNamesThem() throws Exception {
    ThrowingConsumer<Throwable> isNamed =
        failure ->
            assertThat(failure)
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("rank 2 receives it as f32")
                .hasMessageContaining(" under tp=2:S0, rank 3 as bf16")
                .hasMessageContaining("ranks 2 to 3 are job 'inference'");
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              Tensor own = allocate(ROWS, job.communicator().rank());
              try (Link link = job.connect("policy", SOURCE, SOON)) {
                LinkTransferBuilder builder = link.transferBuilder().add("w", SHAPE, own, ROWS);
                assertThatThrownBy(() -> builder.register(SOON)).satisfies(isNamed);
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              Layout rows = Layout.parse("tp=2:S0");
              int rank = job.communicator().rank();
              long[] local = rows.localShape(SHAPE, rank);
              try (Link link = job.connect("policy", TARGET, SOON)) {
                assertThatThrownBy(
                        () -> link.transferBuilder()
                            .into("w", SHAPE, Tensor.allocate(DType.F32, 3), rows))
                    .hasMessageContaining("under tp=2:S0 rank " + rank + " holds ");
                DType dtype = rank == 0 ? DType.F32 : DType.BF16;
                LinkTransferBuilder builder =
                    link.transferBuilder().into("w", SHAPE, Tensor.allocate(dtype, local), rows);
                assertThatThrownBy(() -> builder.register(SOON)).satisfies(isNamed);
              }
            });
    JobThreads.end(source, target);
  }

  private static void requireOtherwise(ThrowingCallable call, String what) {
    assertThatThrownBy(call).isInstanceOf(MismatchException.class).hasMessageContaining(what);
  }

  @Test
  void sidesNameALayoutAsTheyConnect() throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              int rank = job.communicator().rank();
              try (Link link = job.connect("policy", SOURCE, ROWS, SOON)) {
                Tensor own = allocate(ROWS, rank).copyFrom(part(ROWS, rank, 3));
                try (var transfer = link.transferBuilder().add("w", SHAPE, own).register(SOON)) {
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
              assertThatThrownBy(() -> job.connect("policy", TARGET, Layout.parse("4:R"), SOON))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("holds rank 3; the job has ranks 0 to 2");
              assertThatThrownBy(() -> job.connect("policy", TARGET, Layout.parse("3:P"), SOON))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("holds Partial");
              try (Link link = job.connect("policy", TARGET, COLUMNS, SOON)) {
                Tensor own = allocate(COLUMNS, rank);
                try (var transfer = link.transferBuilder().into("w", SHAPE, own).register(SOON)) {
                  assertThat(transfer.receive(SOON)).isEqualTo(3);
                  requirePart(transfer.tensor("w"), COLUMNS, rank, 3);
                }
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void aLinkHasTheOptionsOfItsSource() throws Exception {
    Duration deadline = Duration.ofSeconds(17);
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(deadline).withFirstSequence(4711);
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          try (Link link = job.connect("policy", role, SOON)) {
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
}
