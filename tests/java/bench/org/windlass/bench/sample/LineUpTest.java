// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.ObjIntConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.bench.data.SharedWords;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;

@Timeout(60)
class LineUpTest {
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 8})
  void nobodyLeavesBeforeAllHaveCome(int parties) {
    int rounds = Boolean.getBoolean("windlass.long") ? 2_000 : 400;
    AtomicIntegerArray entered = new AtomicIntegerArray(parties);
    AtomicInteger early = new AtomicInteger();
    run(
        parties,
        Duration.ofSeconds(30),
        (lineUp, rank) -> {
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
  void aFailureLetsWaitersGo() {
    assertThatThrownBy(
            () ->
                run(
                    3,
                    Duration.ofSeconds(30),
                    (lineUp, rank) -> {
                      if (rank == 1) {
                        throw new IllegalStateException("broken");
                      }
                      lineUp.meet();
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("broken")
        .satisfies(
            e ->
                assertThat(e.getSuppressed())
                    .hasSize(2)
                    .allMatch(other -> other instanceof AbortedException));
  }

  @Test
  void whoeverDoesNotComeIsWaitedForUntilTheDeadline() {
    assertThatThrownBy(
            () ->
                run(
                    2,
                    Duration.ofMillis(100),
                    (lineUp, rank) -> {
                      if (rank == 1) {
                        lineUp.meet();
                      }
                    }))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessage("line-up: rank 1 waited 0.1 s, and not all of 2 ranks came");
  }

  private static void run(int parties, Duration deadline, ObjIntConsumer<LineUp> body) {
    var options = CommunicatorOptions.defaults().withDeadline(deadline);
    try (var group = LocalGroup.of(parties, options)) {
      group.run(
          comm -> {
            // Each with a mapping of its own, as processes have.
            try (SharedWords words = new SharedWords(comm, LineUp.WORDS)) {
              body.accept(new LineUp(words, comm, 2), comm.rank());
            }
          });
    }
  }
}
