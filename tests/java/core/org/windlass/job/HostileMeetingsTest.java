// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.COLUMNS;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Native;
import org.windlass.internal.store.Strangers;
import org.windlass.internal.store.Token;

/** Jobs that meet and move where others come to their store who mean harm, or came by mistake. */
@Timeout(300)
class HostileMeetingsTest {
  private static final boolean LONG = Boolean.getBoolean("windlass.long");
  private static final int GARBAGE = LONG ? 10_000 : 1_000;
  private static final int HALF = 100;
  private static final int MISTAKES = LONG ? 50 : 10;
  private static final Duration MOMENT = Duration.ofMillis(50);

  @RegisterExtension private final JobThreads jobs = JobThreads.atServer();

  @FunctionalInterface
  private interface Harm {
    void run() throws Exception;
  }

  private static FutureTask<Void> start(Harm harm) {
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              harm.run();
              return null;
            });
    new Thread(task, "harm").start();
    return task;
  }

  private static Random printedRandom(String test) {
    long seed = new Random().nextLong();
    System.out.println(test + " seed " + seed);
    return new Random(seed);
  }

  /** Whether it is over, the same on all ranks of a job. */
  private static boolean isOver(Job job, FutureTask<Void> harm) {
    try (Tensor over = Tensor.allocate(DType.I32).fill(harm.isDone() ? 1 : 0)) {
      job.communicator().broadcast(over, 0);
      return over.getLong() == 1;
    }
  }

  /**
   * Two jobs meet again and again until the harm is over, and move two versions each time, which the
   * receivers check; an odd one tells them that it was the last time.
   */
  private void meetDuring(FutureTask<Void> harm) throws Exception {
    AtomicInteger meetings = new AtomicInteger();
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              boolean isOver = false;
              for (long version = 2; !isOver; version += 4) {
                isOver = isOver(job, harm);
                try (JobEnd end = new JobEnd(job, SOURCE, ROWS)) {
                  end.send(version, SOON);
                  end.send(version + (isOver ? 1 : 2), SOON);
                  // Until they have closed it.
                  assertThat(catchThrowable(() -> end.send(0, SOON)))
                      .isInstanceOf(AbortedException.class);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            3,
            job -> {
              long version = 0;
              while (version % 2 == 0) {
                try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                  assertThat(end.receive(SOON)).isGreaterThan(version);
                  version = end.receive(SOON);
                }
                meetings.incrementAndGet();
              }
            });
    JobThreads.end(source, target);
    harm.get();
    System.out.println("jobs met " + meetings.get() / 3 + " times");
  }

  @Test
  void garbageAndHalfRequestsDoNotKeepJobsFromMeeting() throws Exception {
    try (Strangers strangers =
        new Strangers(jobs.server().address(), jobs.token(), Native.wl_version())) {
      strangers.sendHalves(HALF);
      meetDuring(start(() -> strangers.sendGarbage(GARBAGE)));
    }
  }

  /** Each is told at once, at any moment of a meeting or a move. */
  @Test
  void jobsOfAnotherTokenStayOut() throws Exception {
    Random random = printedRandom("jobsOfAnotherTokenStayOut");
    meetDuring(
        start(
            () -> {
              try (LocalGroup group = LocalGroup.of(1)) {
                for (int i = 0; i < MISTAKES; i++) {
                  Thread.sleep(random.nextInt(20));
                  assertThatThrownBy(
                          () ->
                              Job.of(
                                  "inference",
                                  group.communicator(0),
                                  CommunicatorOptions.defaults(),
                                  jobs.withToken(Token.random()),
                                  SOON))
                      .isInstanceOf(ResourceException.class)
                      .hasMessageContaining("another token");
                }
              }
            }));
  }

  /** In a moment or, on a machine that takes longer to tell why, in more. */
  private static void requireRefused(Job twin) {
    Duration moment = MOMENT;
    while (true) {
      Duration deadline = moment;
      Throwable refused = catchThrowable(() -> twin.meet("policy", TARGET, deadline));
      assertThat(refused).isInstanceOf(DeadlineExceededException.class);
      if (deadline.compareTo(SOON) > 0
          || refused.getMessage().contains("give each job a name of its own")) {
        assertThat(refused).hasMessageContaining("give each job a name of its own");
        return;
      }
      moment = deadline.multipliedBy(2);
    }
  }

  /** Another of the same name comes for what one receives, at any moment of its moves. */
  @Test
  void aJobThatComesTwiceGetsNothing() throws Exception {
    Random random = printedRandom("aJobThatComesTwiceGetsNothing");
    CountDownLatch met = new CountDownLatch(2);
    FutureTask<Void> harm =
        new FutureTask<>(
            () -> {
              assertThat(met.await(SOON.toSeconds(), TimeUnit.SECONDS)).isTrue();
              try (LocalGroup group = LocalGroup.of(1);
                  Job twin =
                      Job.of(
                          "inference",
                          group.communicator(0),
                          CommunicatorOptions.defaults(),
                          jobs.withToken(jobs.token()),
                          SOON)) {
                for (int i = 0; i < MISTAKES; i++) {
                  Thread.sleep(random.nextInt(20));
                  requireRefused(twin);
                }
              }
              return null;
            });
    new Thread(harm, "harm").start();
    var source =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, SOURCE, ALONE)) {
                met.countDown();
                boolean isOver = false;
                for (long version = 2; !isOver; version += 2) {
                  isOver = isOver(job, harm);
                  end.send(version % 1000 + (isOver ? 1 : 0), SOON);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
                met.countDown();
                long version = 0;
                while (version % 2 == 0) {
                  version = end.receive(SOON);
                }
              }
            });
    JobThreads.end(source, target);
    harm.get();
  }
}
