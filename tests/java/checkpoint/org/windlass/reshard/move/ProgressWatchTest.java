// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.LocalGroup;
import org.windlass.error.DeadlineExceededException;

@Timeout(60)
class ProgressWatchTest {
  private static final Duration DEADLINE = Duration.ofMillis(750);

  /** Two ranks of which one comes late to a barrier, and calls the system all the while. */
  private static void run(long lateMillis, boolean calls) {
    AtomicLong count = new AtomicLong();
    ProgressWatch watch =
        new ProgressWatch(DEADLINE, () -> 0, count::get, 1, moved -> {});
    try (LocalGroup group = LocalGroup.of(2);
        Team team = Team.open(group, () -> 0, DEADLINE)) {
      watch.run(
          team,
          () ->
              group.run(
                  comm -> {
                    for (long at = 0; comm.rank() == 1 && at < lateMillis; at += 20) {
                      LockSupport.parkNanos(20_000_000);
                      count.addAndGet(calls ? 1 : 0);
                    }
                    comm.barrier();
                  }));
    }
    assertThat(count.get() > 0).isEqualTo(calls);
  }

  @Test
  void slowReadsAndWritesAreProgress() {
    run(2000, true);
  }

  @Test
  void nothingForTheLengthOfTheDeadlineIsATimeout() {
    assertThatThrownBy(() -> run(2500, false))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("nothing moved for 0.75 s")
        .hasMessageEndingWith("; the others wait for rank 1");
  }

  private static void watched(LongConsumer listener, Runnable body) {
    AtomicLong moved = new AtomicLong();
    ProgressWatch watch = new ProgressWatch(DEADLINE, moved::incrementAndGet, () -> 0, 9, listener);
    try (LocalGroup group = LocalGroup.of(1);
        Team team = Team.open(group, () -> 0, DEADLINE)) {
      watch.run(team, body);
    }
  }

  private static void sleep(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new AssertionError("the listener was interrupted", e);
    }
  }

  @Test
  void aListenerIsNotInterruptedAtTheEndAndHearsOfIt() {
    List<Long> heard = new CopyOnWriteArrayList<>();
    watched(
        moved -> {
          sleep(300);
          heard.add(moved);
        },
        () -> sleep(100));
    assertThat(heard).hasSize(2).endsWith(9L).doesNotHaveDuplicates();
  }

  @Test
  void theLongestDeadlineIsNotOverAtOnce() {
    ProgressWatch watch =
        new ProgressWatch(
            Duration.ofNanos(Long.MAX_VALUE), () -> 1, () -> 0, 9, moved -> sleep(200));
    try (LocalGroup group = LocalGroup.of(1);
        Team team = Team.open(group, () -> 0, DEADLINE)) {
      watch.run(team, () -> sleep(100));
    }
  }

  @Test
  void aListenerThatLeavesItsThreadInterruptedHearsOn() {
    List<Long> heard = new CopyOnWriteArrayList<>();
    watched(
        moved -> {
          heard.add(moved);
          Thread.currentThread().interrupt();
        },
        () -> sleep(400));
    assertThat(heard).hasSizeGreaterThan(2).endsWith(9L);
  }

  @Test
  void aListenerThatDoesNotReturnHoldsNoFailure() {
    CountDownLatch forever = new CountDownLatch(1);
    LongConsumer stuck = moved -> await(forever);
    try {
      assertThatThrownBy(
              () ->
                  watched(
                      stuck,
                      () -> {
                        sleep(200);
                        throw new IllegalStateException("the body's own");
                      }))
          .isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> watched(stuck, () -> sleep(200)))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("listener of its progress did not return for 0.75 s");
    } finally {
      forever.countDown();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError("the listener was interrupted", e);
    }
  }
}
