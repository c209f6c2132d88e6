// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.COLUMNS;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.time.Duration;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.testing.RandomSeeds;

/** Links of two jobs whose loops catch nothing: a source that finishes, and sides that are late. */
@Timeout(120)
class JobFinishTest {
  private static final Duration MOMENT = Duration.ofMillis(100);

  @RegisterExtension final JobThreads jobs = JobThreads.byFile();

  /** Receivers wait while the source finishes, or ask once it has left. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void receiversGetTheEndAsAResult(boolean isWaiting) throws Exception {
    CyclicBarrier received = new CyclicBarrier(5);
    CountDownLatch left = new CountDownLatch(isWaiting ? 0 : 2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
                end.send(2, SOON);
                received.await();
                Thread.sleep(isWaiting ? 200 : 0);
                end.transfer().finish(SOON);
                end.transfer().finish(SOON);
                assertThat(end.transfer().isFinished()).isTrue();
                assertThatThrownBy(() -> end.send(3, SOON))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("was finished");
              }
              left.countDown();
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                assertThat(end.transfer().tryReceive(SOON)).hasValue(2);
                assertThat(end.transfer().isFinished()).isFalse();
                assertThatThrownBy(() -> end.transfer().finish())
                    .isInstanceOf(InvalidArgumentException.class);
                received.await();
                left.await();
                assertThat(end.transfer().tryReceive(SOON)).isEmpty();
                assertThat(end.transfer().isFinished()).isTrue();
                assertThat(end.transfer().tryReceive(SOON)).isEmpty();
                assertThatThrownBy(() -> end.receive(SOON))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("the senders have finished");
                end.requireHas(2);
              }
            });
    JobThreads.end(source, target);
  }

  @Test
  void aSideThatIsLateIsAResult() throws Exception {
    CyclicBarrier step = new CyclicBarrier(5);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                assertThat(end.transfer().trySend(1, MOMENT)).isFalse();
                step.await();
                step.await();
                end.tensor().copyFrom(JobEnd.part(ROWS, end.rank(), 2));
                assertThat(end.transfer().trySend(2, SOON)).isTrue();
              }
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                step.await();
                assertThat(end.transfer().tryReceive(MOMENT)).isEmpty();
                assertThat(end.transfer().isFinished()).isFalse();
                step.await();
                assertThat(end.transfer().tryReceive(SOON)).hasValue(2);
                end.requireHas(2);
              }
            });
    JobThreads.end(source, target);
  }

  /** Both sides often miss their deadlines. What was sent is received, to the last version. */
  @RandomSeeds(value = 3, inLong = 30)
  void loopsCatchNothing(long seed) throws Exception {
    AtomicLong sent = new AtomicLong();
    AtomicLong received = new AtomicLong();
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              Random random = new Random(seed);
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                for (long version = 1; version <= 40; version++) {
                  Thread.sleep(random.nextInt(6));
                  end.tensor().copyFrom(JobEnd.part(ROWS, end.rank(), version));
                  Duration limit = Duration.ofMillis(10 + random.nextInt(30));
                  if (end.transfer().trySend(version, limit) && end.rank() == 0) {
                    sent.incrementAndGet();
                  }
                }
                end.transfer().finish(SOON);
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              Random random = new Random(seed + 1);
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                while (!end.transfer().isFinished()) {
                  Thread.sleep(random.nextInt(6));
                  OptionalLong version =
                      end.transfer().tryReceive(Duration.ofMillis(1 + random.nextInt(15)));
                  if (version.isPresent()) {
                    end.requireHas(version.getAsLong());
                    received.addAndGet(end.rank() == 0 ? 1 : 0);
                  }
                }
              }
            });
    JobThreads.end(source, target);
    assertThat(received).hasValue(sent.get());
  }

  /** A source that ends without a word is a failure, and one that dies after finish is none. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aSourceThatDies(boolean hasFinished) throws Exception {
    CountDownLatch dead = new CountDownLatch(2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
                if (hasFinished) {
                  end.transfer().finish(SOON);
                }
                job.communicator().barrier();
                end.link().communicator().abort("it died");
              }
              dead.countDown();
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                dead.await();
                if (hasFinished) {
                  assertThat(end.transfer().tryReceive(SOON)).isEmpty();
                } else {
                  assertThatThrownBy(() -> end.transfer().tryReceive(SOON))
                      .isInstanceOf(AbortedException.class)
                      .hasMessageContaining("it died");
                }
                assertThat(end.transfer().isFinished()).isEqualTo(hasFinished);
                end.requireHas(1);
              }
            });
    JobThreads.end(source, target);
  }

  /**
   * A receiver over the links of two jobs tells neither that the other has finished. It gets the
   * end as a result, whichever link is the first one by name.
   */
  @ParameterizedTest
  @CsvSource({"a, b", "b, a"})
  void theEndOfOneJobLeavesTheLinkOfAnother(String ends, String goesOn) throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    var actor =
        jobs.start(
            "actor",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, job.connect(ends, SOURCE, SOON), ALONE)) {
                end.send(1, SOON);
                end.transfer().finish(SOON);
              }
            });
    var critic =
        jobs.start(
            "critic",
            1,
            job -> {
              try (Link link = job.connect(goesOn, SOURCE, SOON);
                  var end = transfer(link, "other")) {
                end.send(1, SOON);
                while (ended.getCount() > 0) {
                  assertThat(end.trySend(2, MOMENT)).isFalse();
                }
                assertThat(link.communicator().failure()).isEmpty();
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              Tensor one = JobEnd.allocate(ALONE, 0);
              Tensor other = JobEnd.allocate(ALONE, 0);
              try (Link a = job.connect(ends, TARGET, SOON);
                  Link b = job.connect(goesOn, TARGET, SOON);
                  var both =
                      a.transferBuilder()
                          .into("w", SHAPE, one, ALONE)
                          .and(b)
                          .into("other", SHAPE, other, ALONE)
                          .register(SOON)) {
                assertThat(both.receive(SOON)).isEqualTo(1);
                assertThat(both.tryReceive(SOON)).isEmpty();
                assertThat(both.isFinished()).isTrue();
                assertThat(both.version()).hasValue(1);
                ended.countDown();
                critic.get();
              }
            });
    JobThreads.end(actor, critic, target);
  }

  @Test
  void theEndReachesTheOtherLinksIfOneHasFailed() throws Exception {
    CountDownLatch aborted = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              Tensor own = JobEnd.allocate(ALONE, 0);
              try (Link a = job.connect("a", SOURCE, SOON);
                  Link b = job.connect("b", SOURCE, SOON);
                  var both =
                      a.transferBuilder()
                          .add("w", SHAPE, own, ALONE)
                          .and(b)
                          .add("other", SHAPE, own, ALONE)
                          .register(SOON)) {
                own.copyFrom(JobEnd.part(ALONE, 0, 1));
                both.send(1, SOON);
                a.communicator().abort("the actor is ill");
                aborted.countDown();
                assertThatThrownBy(() -> both.finish(SOON))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("the actor is ill");
              }
            });
    var actor =
        jobs.start(
            "actor",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, job.connect("a", TARGET, SOON), ALONE)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                aborted.await();
              }
            });
    var critic =
        jobs.start(
            "critic",
            1,
            job -> {
              try (Link link = job.connect("b", TARGET, SOON);
                  var end = transfer(link, "other")) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                assertThat(end.tryReceive(SOON)).isEmpty();
                assertThat(end.isFinished()).isTrue();
              }
            });
    JobThreads.end(source, actor, critic);
  }

  /** A transfer of one tensor of that name, whole on the one rank of a job. */
  private static LinkTransfer transfer(Link link, String name) {
    Tensor tensor = JobEnd.allocate(ALONE, 0);
    LinkTransferBuilder builder = link.transferBuilder();
    return link.sends()
        ? builder.add(name, SHAPE, tensor, ALONE).register(SOON)
        : builder.into(name, SHAPE, tensor, ALONE).register(SOON);
  }

  @Test
  void receiversThatHaveLeftAreNoFailureOfFinish() throws Exception {
    CountDownLatch left = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
                left.await();
                end.transfer().finish(SOON);
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              JobEnd.moveOne(job, TARGET, ALONE);
              left.countDown();
            });
    JobThreads.end(source, target);
  }

  /** It has not left in peace, and may need another version. */
  @Test
  void aReceiverThatHasAbortedIsAFailureOfFinish() throws Exception {
    CountDownLatch aborted = new CountDownLatch(1);
    CountDownLatch told = new CountDownLatch(2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
                aborted.await();
                assertThatThrownBy(() -> end.transfer().finish(SOON))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("finish on link 'policy'")
                    .hasMessageContaining("it is ill");
                told.countDown();
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                end.link().communicator().abort("it is ill");
                aborted.countDown();
                told.await();
              }
            });
    JobThreads.end(source, target);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void sendersThatDisagreeAreTold(int finishing) throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
                assertThatThrownBy(
                        () -> {
                          if (end.rank() == finishing) {
                            end.transfer().finish(SOON);
                          }
                          end.transfer().trySend(2, SOON);
                        })
                    .isInstanceOf(WindlassException.class)
                    .hasMessageMatching(".*some senders finish.*|.*was finished.*");
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                if (finishing == 0) {
                  assertThat(end.transfer().tryReceive(SOON)).isEmpty();
                } else {
                  assertThatThrownBy(() -> end.transfer().tryReceive(SOON))
                      .isInstanceOf(WindlassException.class);
                }
                end.requireHas(1);
              }
            });
    long startNs = System.nanoTime();
    JobThreads.end(source, target);
    assertThat(System.nanoTime() - startNs).isLessThan(SOON.toNanos() / 2);
  }

  /** A rank of either side can't move its part: the version fails on all ranks, at once. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aVersionFailsOnAllRanksOfASide(boolean isSender) throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                end.send(1, SOON);
                end.send(2, SOON);
                if (isSender && end.rank() == 1) {
                  end.tensor().close();
                }
                assertThatThrownBy(() -> end.transfer().trySend(3, SOON))
                    .isInstanceOf(WindlassException.class)
                    .hasMessageContaining("was closed");
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ROWS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                assertThat(end.receive(SOON)).isEqualTo(2);
                if (!isSender && end.rank() == 1) {
                  end.tensor().close(); // the half of odd versions
                }
                assertThatThrownBy(() -> end.transfer().tryReceive(SOON))
                    .isInstanceOf(WindlassException.class)
                    .hasMessageContaining("was closed");
                end.requireHas(2);
              }
            });
    long startNs = System.nanoTime();
    JobThreads.end(source, target);
    assertThat(System.nanoTime() - startNs).isLessThan(SOON.toNanos() / 2);
  }

  /** One of them has not been linked before. */
  @Test
  void followersGetTheEndAsAResult() throws Exception {
    CountDownLatch sent = new CountDownLatch(2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              Tensor own = JobEnd.allocate(ROWS, job.communicator().rank());
              try (Followers followers =
                  job.followers("policy", builder -> builder.add("w", SHAPE, own, ROWS))) {
                followers.await(1, SOON);
                own.copyFrom(JobEnd.part(ROWS, job.communicator().rank(), 1));
                assertThat(followers.send(1, SOON)).allMatch(each -> each.lag() == 0);
                sent.countDown();
                Deadline until = Deadline.of(SOON);
                while (job.search("policy", until, LinkSearch::open).isEmpty()) {
                  Thread.sleep(10);
                }
                assertThat(followers.finish(SOON))
                    .hasSize(2)
                    .allMatch(each -> each.lost().isEmpty());
              }
            });
    JobThreads.Body body =
        job -> {
          boolean isLate = job.name().equals("b");
          if (isLate) {
            sent.await();
          }
          try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
            if (!isLate) {
              assertThat(end.receive(SOON)).isEqualTo(1);
            }
            assertThat(end.transfer().tryReceive(SOON)).isEmpty();
            assertThat(end.transfer().isFinished()).isTrue();
          }
        };
    JobThreads.end(source, jobs.start("a", 1, body), jobs.start("b", 1, body));
  }
}
