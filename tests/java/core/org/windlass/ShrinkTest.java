// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.testing.Processes;
import org.windlass.testing.Resources;

/**
 * New communicators of the ranks that a failure leaves, which are threads, or processes. Methods
 * without {@code @Test} are what processes run.
 */
@Timeout(180)
class ShrinkTest {
  private static final Duration SOON = Duration.ofSeconds(60);

  @TempDir Path folder;

  /** Every rank of {@code comm} brings its old rank, and gets all of them. */
  private static void assertMembers(Communicator comm, int own, int... former) {
    assertThat(comm.size()).isEqualTo(former.length);
    assertThat(former[comm.rank()]).isEqualTo(own);
    try (Window window = comm.window(1 << 20)) {
      Tensor in = window.tensor(DType.I32, 10_000);
      Tensor out = window.tensor(DType.I32, former.length, 10_000);
      in.fill(own);
      comm.allGather(in, out);
      int[] got = new int[(int) out.numel()];
      out.copyTo(got);
      assertThat(got).isEqualTo(IntStream.range(0, got.length).map(i -> former[i / 10_000]).toArray());
      comm.barrier();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 8})
  void threadsGoOnWithoutTheOneThatLeft(int ranks) {
    try (LocalGroup group = LocalGroup.of(ranks)) {
      group.run(
          comm -> {
            comm.barrier();
            if (comm.rank() == 1) {
              comm.close();
              return;
            }
            assertThatThrownBy(comm::barrier).isInstanceOf(AbortedException.class);
            int[] former = IntStream.range(0, ranks).filter(rank -> rank != 1).toArray();
            try (Communicator shrunk = comm.shrink(SOON)) {
              assertMembers(shrunk, comm.rank(), former);
              assertThat(shrunk.parentRanks()).isEqualTo(IntStream.of(former).boxed().toList());
              assertThat(shrunk.deadline()).isEqualTo(comm.deadline());
              assertThatThrownBy(comm::barrier).isInstanceOf(AbortedException.class);
              assertThatThrownBy(() -> comm.shrink(SOON))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("has shrunk this communicator already");
            }
          });
    }
  }

  @Test
  void whoDoesNotComeIsLeftOutOfThisAndOfEverythingElse() {
    AtomicInteger wentOn = new AtomicInteger();
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            comm.barrier();
            if (comm.rank() == 0) {
              comm.abort("start anew");
              while (wentOn.get() < 2) {
                Thread.yield();
              }
              for (int i = 0; i < 2; i++) {
                AbortedException leftOut =
                    (AbortedException) catchThrowable(() -> comm.shrink(SOON));
                assertThat(leftOut).hasMessageContaining("rank 0 was left out");
                assertThat(leftOut.operation()).isEqualTo("shrink");
                assertThat(leftOut.faultyRanks()).containsExactly(0);
                assertThatThrownBy(comm::barrier)
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("rank 0 was left out");
              }
              assertThat(comm.failure()).get().asString().contains("rank 0 was left out");
              return;
            }
            assertThatThrownBy(comm::barrier).hasMessageContaining("start anew");
            try (Communicator shrunk = comm.shrink(Duration.ofSeconds(1))) {
              wentOn.incrementAndGet();
              assertMembers(shrunk, comm.rank(), 1, 2);
            }
          });
    }
  }

  @Test
  void itIsOfTheFailedAlone() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            assertThatThrownBy(() -> comm.shrink(SOON))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("the communicator lives");
            comm.barrier();
          });
      group.communicator(0).close();
      assertThatThrownBy(() -> group.communicator(0).shrink(SOON))
          .isInstanceOf(ClosedException.class);
      assertThatThrownBy(() -> group.communicator(1).shrink(Duration.ofSeconds(-1)))
          .isInstanceOf(InvalidArgumentException.class);
    }
  }

  /** One waits in it for the other, which never comes. */
  @Test
  void anInterruptEndsIt() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator comm = group.communicator(0);
      comm.abort("start anew");
      Caller caller = new Caller(() -> comm.shrink(SOON));
      assertThat(comm.report().toString()).contains("in shrink after #");
      assertThat(caller.interrupt()).isLessThan(30_000);
      assertThat(caller.failure.get()).isInstanceOf(AbortedException.class);
      assertThat(caller.interruptFlag).isTrue();
      // It may come again, and is alone by the deadline.
      try (Communicator alone = comm.shrink(Duration.ofMillis(100))) {
        assertMembers(alone, 0, 0);
      }
    }
  }

  @Test
  void threadsThatMustNotBlockShrinkToo() throws Exception {
    ForkJoinPool pool = new ForkJoinPool(2);
    try (LocalGroup group = LocalGroup.of(3)) {
      group.communicator(1).abort("start anew");
      List<ForkJoinTask<?>> tasks = new ArrayList<>();
      for (Communicator comm : group.communicators()) {
        tasks.add(
            pool.submit(
                () -> {
                  try (Communicator shrunk = comm.shrink(SOON)) {
                    assertMembers(shrunk, comm.rank(), 0, 1, 2);
                  }
                }));
      }
      for (ForkJoinTask<?> task : tasks) {
        task.get();
      }
      group.communicators().forEach(Communicator::close);
      Communicator closed = group.communicator(0);
      assertThat(pool.submit(() -> catchThrowable(() -> closed.shrink(SOON))).get())
          .isInstanceOf(ClosedException.class);
    } finally {
      pool.shutdown();
    }
  }

  /** A call that goes on holds it up; one that had not begun ends with the failure. */
  @Test
  void itTakesItsTurnBehindQueuedCalls() throws Exception {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator comm = group.communicator(0);
      CompletableFuture<Void> released = new CompletableFuture<>();
      comm.runAsync(c -> released.join());
      Operation<Void> behind = comm.runAsync(Collectives::barrier);
      comm.abort("start anew");
      Caller caller =
          new Caller(
              () -> {
                try (Communicator shrunk = comm.shrink(SOON)) {
                  assertMembers(shrunk, 0, 0);
                }
              });
      released.complete(null);
      assertThatThrownBy(behind::await).hasMessageContaining("start anew");
      caller.thread.join();
      assertThat(caller.failure.get()).isNull();
    }
  }

  @Test
  void manyLeaveNothingBehind() {
    Runnable rounds =
        () -> {
          for (int round = 0; round < 20; round++) {
            try (LocalGroup group = LocalGroup.of(3)) {
              group.run(
                  comm -> {
                    comm.abort("start anew");
                    try (Communicator shrunk = comm.shrink(SOON)) {
                      shrunk.barrier();
                      shrunk.abort("once more");
                      shrunk.shrink(SOON).close();
                    }
                  });
            }
          }
        };
    rounds.run();
    Resources before = Resources.settled();
    rounds.run();
    before.requireNoMoreNow();
  }

  // ---- processes --------------------------------------------------------------------------------

  @Test
  void processesGoOnWithoutTheOneThatWasKilled() throws Exception {
    try (Processes processes = new Processes(ShrinkTest.class, 4, folder)) {
      List<Processes.Rank> ranks = processes.start("goesOn");
      ranks.get(2).await("at work");
      ranks.get(2).kill();
      for (int rank : new int[] {0, 1, 3}) {
        assertThat(ranks.get(rank).ended())
            .contains("process " + ranks.get(2).pid() + " on ")
            .contains("rank 2 is lost: it ")
            .contains("went on");
      }
    }
  }

  static void goesOn() {
    try (Communicator comm =
            Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON);
        Window window = comm.window(1 << 20)) {
      Tensor tensor = window.tensor(DType.F32, 50_000);
      comm.allReduce(tensor, ReduceOp.SUM);
      System.out.println("at work");
      WindlassException lost =
          (WindlassException)
              catchThrowable(
                  () -> {
                    while (true) {
                      comm.allReduce(tensor, ReduceOp.SUM);
                    }
                  });
      System.out.println(lost.getMessage());
      assertThat(lost).isInstanceOf(PeerLostException.class);
      assertThat(lost.faultyRanks()).containsExactly(2);
      try (Communicator shrunk = comm.shrink(SOON)) {
        assertMembers(shrunk, comm.rank(), 0, 1, 3);
        assertThat(shrunk.parentRanks()).containsExactly(0, 1, 3);
        // Again, where nobody died.
        shrunk.barrier();
        if (shrunk.rank() == 0) {
          shrunk.abort("once more");
        }
        assertThatThrownBy(
                () -> {
                  while (true) {
                    shrunk.barrier();
                  }
                })
            .isInstanceOf(AbortedException.class)
            .hasMessageContaining("once more");
        try (Communicator again = shrunk.shrink(SOON)) {
          assertMembers(again, comm.rank(), 0, 1, 3);
          // as it was numbered in `shrunk`
          assertThat(again.parentRanks()).containsExactly(0, 1, 2);
        }
      }
      System.out.println("went on");
    }
  }
}
