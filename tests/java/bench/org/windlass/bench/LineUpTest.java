// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class LineUpTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 8})
  void nobodyLeavesBeforeAllHaveCome(int parties) throws InterruptedException {
    int rounds = 2_000;
    LineUp lineUp = new LineUp(parties, 2);
    AtomicIntegerArray entered = new AtomicIntegerArray(parties);
    AtomicInteger early = new AtomicInteger();
    run(
        parties,
        rank -> {
          for (int round = 1; round <= rounds; round++) {
            entered.set(rank, round);
            lineUp.meet();
            for (int peer = 0; peer < parties; peer++) {
              if (entered.get(peer) < round) {
                early.incrementAndGet();
              }
            }
          }
        });
    assertThat(early).hasValue(0);
  }

  @Test
  void cancelLetsWaitersGo() throws InterruptedException {
    LineUp lineUp = new LineUp(3, 2);
    AtomicInteger cancelled = new AtomicInteger();
    run(
        3,
        rank -> {
          if (rank == 0) {
            lineUp.cancel();
            return;
          }
          try {
            lineUp.meet();
          } catch (LineUp.Cancelled e) {
            cancelled.incrementAndGet();
          }
        });
    assertThat(cancelled).hasValue(2);
  }

  private static void run(int threads, java.util.function.IntConsumer body)
      throws InterruptedException {
    List<Thread> started = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int rank = i;
      Thread thread = new Thread(() -> body.accept(rank));
      thread.start();
      started.add(thread);
    }
    for (Thread thread : started) {
      thread.join();
    }
  }
}
