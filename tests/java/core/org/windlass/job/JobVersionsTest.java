// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.COLUMNS;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.Tensor;
import org.windlass.error.DeadlineExceededException;
import org.windlass.link.LinkTransfer;
import org.windlass.testing.RandomSeeds;

/** Versions that move between jobs: who waits for them, skips some, or sees that one is there. */
@Timeout(180)
class JobVersionsTest {
  private static final Duration MOMENT = Duration.ofMillis(700);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

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
                    end.link().transferBuilder().add("v", SHAPE, end.tensor(), ALONE)
                        .register(SOON)) {
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
                while (!end.transfer().isVersionOffered()) {
                  Thread.sleep(1);
                }
                assertThat(end.transfer().newest()).hasValue(7);
                assertThat(end.receive(SOON)).isEqualTo(7);
                assertThat(end.transfer().isVersionOffered()).isFalse();
                looked.countDown();
                try (Tensor own = allocate(ALONE, 0);
                    LinkTransfer other =
                        end.link().transferBuilder().into("v", SHAPE, own, ALONE).register(SOON)) {
                  while (!other.isVersionOffered()) {
                    Thread.sleep(1);
                  }
                  assertThat(end.transfer().isVersionOffered()).isFalse(); // it is the other's
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
}
