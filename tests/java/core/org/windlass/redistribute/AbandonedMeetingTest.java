// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.redistribute.JobEnd.ROWS;
import static org.windlass.redistribute.JobThreads.SOON;
import static org.windlass.redistribute.Role.SOURCE;
import static org.windlass.redistribute.Role.TARGET;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.DeadlineExceededException;
import org.windlass.internal.store.Store;

/** Jobs that have found one another, of which one gives up before they have come together. */
@Timeout(120)
class AbandonedMeetingTest {
  private static final String TARGETS = "pair/policy/target/";

  @RegisterExtension private final JobThreads jobs = JobThreads.atServer();

  private final CountDownLatch hasFailed = new CountDownLatch(2);
  private final CountDownLatch mayMeet = new CountDownLatch(1);

  /** A job whose first meeting finds nobody, and whose second begins once it may. */
  private FutureTask<Void> late(String name, Role role) {
    return jobs.start(
        name,
        2,
        job -> {
          assertThatThrownBy(() -> job.meet("policy", role, Duration.ofSeconds(1)))
              .isInstanceOf(DeadlineExceededException.class);
          hasFailed.countDown();
          mayMeet.await();
          moveOne(job, role);
        });
  }

  private FutureTask<Void> prompt(String name, Role role) {
    return jobs.start(name, 2, job -> moveOne(job, role));
  }

  private static void moveOne(Job job, Role role) {
    try (JobEnd end = new JobEnd(job, role, ROWS)) {
      if (role == SOURCE) {
        end.send(1, SOON);
      } else {
        assertThat(end.receive(SOON)).isEqualTo(1);
      }
    }
  }

  @Test
  void aSourceThenMeetsTheTargetThatComes() throws Exception {
    try (Store store = jobs.store()) {
      FutureTask<Void> target = late("inference", TARGET);
      byte[] open = store.await(TARGETS + "inference", SOON);
      hasFailed.await();

      // Another, which is answered, and has given up by then.
      store.set(TARGETS + "ghost", open, SOON);
      FutureTask<Void> source = prompt("trainer", SOURCE);
      byte[] answered = store.awaitOther(TARGETS + "ghost", open, SOON).orElseThrow();
      assertThat(store.compareAndSet(TARGETS + "ghost", answered, null, SOON)).isTrue();
      mayMeet.countDown();
      JobThreads.end(source, target);
    }
  }

  @Test
  void aTargetThenMeetsTheSourceThatComes() throws Exception {
    try (Store store = jobs.store()) {
      FutureTask<Void> source = late("trainer", SOURCE);
      byte[] said = store.await("pair/policy/source", SOON);
      hasFailed.await();

      // It is answered in the source's name, for a meeting that has nobody any more.
      FutureTask<Void> target = prompt("inference", TARGET);
      byte[] open = store.await(TARGETS + "inference", SOON);
      byte[] answered =
          ByteBuffer.allocate(open.length + said.length).put(open).put(said).putLong(0, 7).array();
      assertThat(store.compareAndSet(TARGETS + "inference", open, answered, SOON)).isTrue();
      assertThat(store.awaitOther(TARGETS + "inference", answered, SOON))
          .matches(next -> next.isEmpty() || ByteBuffer.wrap(next.get()).equals(ByteBuffer.wrap(open)));
      mayMeet.countDown();
      JobThreads.end(source, target);
    }
  }
}
