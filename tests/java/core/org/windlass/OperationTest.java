// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/** Asynchronous operations: their order, what comes of them, and waiting for them. */
@Timeout(120)
class OperationTest {
  /** Waits for less time than an idle thread lives. */
  private static void until(BooleanSupplier done) throws InterruptedException {
    long end = System.nanoTime() + ofSeconds(8).toNanos();
    while (!done.getAsBoolean() && System.nanoTime() < end) {
      Thread.sleep(5);
    }
    assertThat(done.getAsBoolean()).isTrue();
  }

  /** Whether a communicator's own thread of that rank exists. */
  private static boolean hasThread(int rank) {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().equals("windlass-calls-" + rank));
  }

  @OnRanks({1, 2, 3, 4, 8})
  void outputsAreCompleteOnceItIsOver(Ranks ranks) {
    ranks.run(
        communicator -> {
          int n = communicator.size();
          try (Window window = communicator.window(1 << 16)) {
            for (Tensor tensor :
                List.of(window.tensor(DType.I64, 500), Tensor.allocate(DType.I64, 500))) {
              tensor.fill(communicator.rank() + 1L);
              Operation<Void> sum = communicator.runAsync(c -> c.allReduce(tensor, ReduceOp.SUM));
              sum.await(ofSeconds(20));
              assertThat(sum.isDone()).isTrue();
              assertThat(tensor.getLong(499)).isEqualTo(n * (n + 1L) / 2);
            }
          }
        });
  }

  @OnRanks(2)
  void whatACallReturnsIsTheResult(Ranks ranks) {
    ranks.run(
        communicator -> {
          int rank = communicator.rank();
          Tensor in = Tensor.allocate(DType.I32, 3).fill(rank);
          Tensor out = Tensor.allocate(DType.I32, 6);
          long[] counts = {1, 2};
          Operation<long[]> exchange = communicator.supplyAsync(c -> c.allToAllv(in, counts, out));
          assertThat(exchange.await()).containsExactly(rank + 1, rank + 1);
          assertThat(exchange.toCompletableFuture().join()).hasSize(2);
          assertThat(out.getLong(rank)).isZero();
          assertThat(out.getLong(rank + 1)).isEqualTo(1);
        });
  }

  @OnRanks(2)
  void callsRunInOrderAndOthersWaitTheirTurnBehindThem(Ranks ranks) {
    ranks.run(
        communicator -> {
          List<Integer> order = Collections.synchronizedList(new ArrayList<>());
          Gate gate = new Gate(communicator);
          for (int i = 0; i < 100; i++) {
            int number = i;
            communicator.runAsync(
                c -> {
                  if (number == 50) {
                    sleep(20);
                  }
                  order.add(number);
                });
          }
          assertThat(order).isEmpty();
          gate.open();
          communicator.barrier();
          assertThat(order).hasSize(100).isSorted();
        });
  }

  /** All that takes part in the order, called while an operation is in progress. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "barrier",
        "broadcast",
        "allToAllv",
        "exchange",
        "allGatherv",
        "reduceScatterv",
        "window",
        "split",
        "transfer",
        "put",
        "notify",
        "test",
        "await"
      })
  void noKindOfCallOvertakesAnOperation(String kind) {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Tensor from = Tensor.allocate(DType.I32, 1);
      Tensor to = Tensor.allocate(DType.I32, 1);
      Layout whole = Layout.parse("1:R");
      TransferBuilder builder = TransferBuilder.of(communicator);
      builder.add("x", new long[] {1}, DType.I32, whole, from, whole, to);
      try (Transfer transfer = builder.register();
          Window window = communicator.window(1 << 12)) {
        DistributedTensor remote = window.tensor(DType.I32, 1);
        Signals signals = window.signals(1);
        signals.notify(0, 0, 1);
        long[] one = {1};
        AtomicBoolean over = new AtomicBoolean();
        communicator.runAsync(
            c -> {
              sleep(50);
              over.set(true);
            });
        switch (kind) {
          case "barrier" -> communicator.barrier();
          case "broadcast" -> communicator.broadcast(from, 0);
          case "window" -> communicator.window(64).close();
          case "split" -> communicator.split(0, 0).close();
          case "allToAllv" -> communicator.allToAllv(from, one, to);
          case "exchange" -> communicator.allToAllv(from, one, to, one);
          case "allGatherv" -> communicator.allGatherv(from, to, one);
          case "reduceScatterv" -> communicator.reduceScatterv(from, to, one, ReduceOp.SUM);
          case "transfer" -> transfer.run();
          case "put" -> window.put(from, 0, remote);
          case "notify" -> signals.notify(0, 0, 2);
          case "test" -> signals.test(0, 0, 1);
          case "await" -> signals.await(0, 0, 1);
          default -> throw new AssertionError(kind);
        }
        assertThat(over).isTrue();
      }
    }
  }

  private static void sleep(int millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void onlyWhatIsQueuedTakesAThread() throws Exception {
    int last = 11; // no other test has that many ranks and a call queued
    try (LocalGroup group = LocalGroup.of(last + 1)) {
      group.run(Communicator::barrier);
      assertThat(hasThread(last)).isFalse();
      group.run(communicator -> communicator.runAsync(Collectives::barrier).await());
      assertThat(hasThread(last)).isTrue();
    }
    until(() -> !hasThread(last));
  }

  @OnRanks(2)
  void aCallMayMakeSeveralOperationsUnderItsDeadline(Ranks ranks) {
    ranks.run(
        communicator -> {
          Tensor own = Tensor.allocate(DType.I32, 3).fill(communicator.rank() + 1L);
          communicator
              .runAsync(
                  c -> {
                    c.broadcast(own, 1);
                    c.allReduce(own, ReduceOp.SUM);
                    communicator.window(64).close();
                  })
              .await();
          assertThat(own.getLong(2)).isEqualTo(4);
          if (communicator.rank() == 1) {
            return;
          }
          Operation<Void> late =
              communicator.withDeadline(ofMillis(100)).runAsync(Collectives::barrier);
          assertThatThrownBy(late::await)
              .isInstanceOf(DeadlineExceededException.class)
              .hasMessageContaining("rank 1");
          assertThat(communicator.failure()).isPresent();
        });
  }

  @Test
  void awaitThrowsWhatTheCallThrew() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      assertThatThrownBy(communicator.runAsync(c -> c.broadcast((Tensor) null, 0))::await)
          .isInstanceOf(NullPointerException.class)
          .hasMessage("tensor");
      for (Throwable thrown :
          List.of(new IllegalStateException(), new AssertionError(), new IOException())) {
        Operation<Void> operation =
            communicator.runAsync(c -> OperationTest.<RuntimeException>sneak(thrown));
        assertThat(catchThrowable(operation::await)).isSameAs(thrown);
        assertThat(catchThrowable(operation::await)).isSameAs(thrown);
      }
      communicator.runAsync(Collectives::barrier).await();
    }
  }

  @SuppressWarnings("unchecked") // X is erased: nothing is cast
  private static <X extends Throwable> void sneak(Throwable thrown) throws X {
    throw (X) thrown;
  }

  @Test
  void aWaitThatTimesOutLeavesTheOperation() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      Operation<Void> barrier = communicator.runAsync(Collectives::barrier);
      long start = System.nanoTime();
      assertThatThrownBy(() -> barrier.await(ofMillis(50)))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("not over after 50 ms");
      assertThat((System.nanoTime() - start) / 1e6).isBetween(50.0, 30_000.0);
      assertThat(barrier.isDone()).isFalse();
      assertThat(communicator.failure()).isEmpty();
      group.communicator(1).barrier();
      barrier.await();
    }
  }

  @Test
  void anInterruptedWaitLeavesTheOperation() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      Operation<Void> barrier = communicator.runAsync(Collectives::barrier);
      double best = Double.MAX_VALUE; // other work on the machine only adds time
      for (int attempt = 0; attempt < 8 && best >= 100; attempt++) {
        Caller waiting = new Caller(barrier::await);
        best = Math.min(best, waiting.interrupt());
        assertThat(waiting.failure.get())
            .isInstanceOf(AbortedException.class)
            .hasMessageContaining("interrupted")
            .hasMessageContaining("goes on");
        assertThat(waiting.interruptFlag).isTrue();
      }
      assertThat(best).isLessThan(100);
      assertThat(communicator.failure()).isEmpty();
      group.communicator(1).barrier();
      barrier.await();
    }
  }

  @Test
  void anInterruptedCallThatWaitsItsTurnEndsTheCommunicator() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      Gate gate = new Gate(communicator);
      Caller waiting = new Caller(communicator::barrier);
      waiting.interrupt(); // returns while the gate is closed
      assertThat(waiting.failure.get())
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("interrupted");
      assertThat(waiting.interruptFlag).isTrue();
      assertThat(group.communicator(1).failure()).isPresent();
      gate.open();
    }
  }

  @Test
  void anOperationCannotAwaitOneBehindIt() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Operation<Void> outer = communicator.runAsync(c -> c.runAsync(Collectives::barrier).await());
      assertThatThrownBy(outer::await)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("awaits it");
      communicator.barrier();
    }
  }

  @Test
  void tensorsOfAQueuedCallStayReachableUntilItIsOver() throws Exception {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Gate gate = new Gate(communicator);
      WeakReference<Tensor> tensor = new WeakReference<>(Tensor.allocate(DType.F32, 1000));
      Operation<Void> operation = reduceLater(communicator, tensor.get());
      for (int i = 0; i < 3; i++) {
        System.gc();
        Thread.sleep(10);
      }
      assertThat(tensor.get()).isNotNull();
      gate.open();
      operation.await();
      until(
          () -> {
            System.gc();
            return tensor.get() == null;
          });
      Reference.reachabilityFence(operation);
    }
  }

  private static Operation<Void> reduceLater(Communicator communicator, Tensor tensor) {
    return communicator.runAsync(c -> c.allReduce(tensor, ReduceOp.SUM));
  }

  @Test
  void workersOfOnePoolAwaitEachOthersRanks() throws Exception {
    int ranks = 6;
    ForkJoinPool pool = new ForkJoinPool(2);
    try (LocalGroup group = LocalGroup.of(ranks)) {
      List<CompletableFuture<Void>> done = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        Communicator communicator = group.communicator(rank);
        done.add(
            CompletableFuture.runAsync(
                () -> {
                  for (int i = 0; i < 20; i++) {
                    communicator.runAsync(Collectives::barrier).await();
                  }
                },
                pool));
      }
      CompletableFuture.allOf(done.toArray(new CompletableFuture<?>[0])).get(30, TimeUnit.SECONDS);
    } finally {
      pool.shutdown();
    }
  }
}
