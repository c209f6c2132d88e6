// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.AbortedException;
import org.windlass.layout.Layout;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Calls from threads that must not block: ForkJoin workers, and virtual threads where there are
 * any.
 */
@Timeout(60)
class HandoffTest {
  private static void useEverything(Communicator communicator) {
    int ranks = communicator.size();
    try (Window window = communicator.window(4096)) {
      Tensor in = window.tensor(DType.I32, ranks);
      Tensor out = window.tensor(DType.I32, ranks);
      in.fill(communicator.rank());
      communicator.barrier();
      communicator.allToAll(in, out);
      for (int r = 0; r < ranks; r++) {
        assertThat(out.getLong(r)).isEqualTo(r);
      }
      communicator.broadcast(out, 0);
      Signals signals = window.signals(1);
      int right = (communicator.rank() + 1) % ranks;
      window.put(in, right, window.tensor(DType.I32, ranks));
      signals.notify(right, 0, 1);
      signals.await((communicator.rank() + ranks - 1) % ranks, 0, 1);
      communicator.runAsync(c -> c.allReduce(in, ReduceOp.SUM)).await();
      assertThat(in.getLong(0)).isEqualTo(ranks * (ranks - 1) / 2);
      try (Communicator all = communicator.split(0, 0)) {
        all.barrier();
      }
      Tensor target = Tensor.allocate(DType.I32, ranks);
      Layout replicated = Layout.parse(ranks + ":R");
      TransferBuilder builder = TransferBuilder.of(communicator);
      builder.add("x", new long[] {ranks}, DType.I32, replicated, out, replicated, target);
      try (Transfer transfer = builder.register()) {
        transfer.run();
      }
    }
  }

  @Test
  void moreRanksThanForkJoinWorkers() throws Exception {
    int ranks = 8;
    ForkJoinPool pool = new ForkJoinPool(2);
    try (LocalGroup group = LocalGroup.of(ranks)) {
      List<ForkJoinTask<?>> tasks = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        Communicator communicator = group.communicator(rank);
        tasks.add(pool.submit(() -> useEverything(communicator)));
      }
      for (ForkJoinTask<?> task : tasks) {
        task.get();
      }
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void failuresComeBackAsTheyAre() throws Exception {
    try (LocalGroup group = LocalGroup.of(1)) {
      Throwable failure =
          new ForkJoinPool(1)
              .submit(() -> catchThrowable(() -> group.communicator(0).broadcast((Tensor) null, 0)))
              .get();
      assertThat(failure)
          .isInstanceOf(NullPointerException.class)
          .hasMessage("tensor");
    }
  }

  @Test
  void anInterruptedWorkerGetsOut() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      AtomicReference<Thread> worker = new AtomicReference<>();
      ForkJoinTask<Boolean> task =
          new ForkJoinPool(1)
              .submit(
                  () -> {
                    worker.set(Thread.currentThread());
                    assertThatThrownBy(group.communicator(0)::barrier)
                        .isInstanceOf(AbortedException.class)
                        .hasMessageContaining("interrupted");
                    return Thread.currentThread().isInterrupted();
                  });
      Thread.sleep(100);
      long start = System.nanoTime();
      worker.get().interrupt();
      assertThat(task.get()).isTrue();
      assertThat((System.nanoTime() - start) / 1e6).isLessThan(30_000);
    }
  }

  @Test
  void virtualThreads() throws Exception {
    Method start = startVirtualThread();
    Assumptions.assumeTrue(start != null, "virtual threads need Java 21");
    int ranks = 40;
    try (LocalGroup group = LocalGroup.of(ranks)) {
      List<Thread> threads = new ArrayList<>();
      AtomicReference<Throwable> failure = new AtomicReference<>();
      for (int rank = 0; rank < ranks; rank++) {
        Communicator communicator = group.communicator(rank);
        Runnable body =
            () -> {
              Throwable thrown = catchThrowable(() -> useEverything(communicator));
              if (thrown != null) {
                failure.compareAndSet(null, thrown);
                communicator.abort(thrown.toString());
              }
            };
        threads.add((Thread) start.invoke(null, body));
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(failure.get()).isNull();
    }
  }

  private static Method startVirtualThread() {
    try {
      return Thread.class.getMethod("startVirtualThread", Runnable.class);
    } catch (NoSuchMethodException e) {
      return null;
    }
  }
}
