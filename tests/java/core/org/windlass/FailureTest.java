// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.ErrorCode;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;

/**
 * How operations end when something goes wrong: deadlines, aborts, closes, interrupts, throwing
 * bodies.
 */
@Timeout(60)
class FailureTest {
  private static final Duration SHORT = Duration.ofMillis(800);

  private static List<Integer> faultyRanks(Throwable failure) {
    return ((WindlassException) failure).faultyRanks();
  }

  /** The deadline is longer than the test may take. */
  private static LocalGroup patient(int ranks) {
    return LocalGroup.of(
        ranks, CommunicatorOptions.defaults().withDeadline(Duration.ofMinutes(10)));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 8})
  void aRankWhoseBodyHasReturnedIsNamedAtOnce(int ranks) {
    int missing = ranks / 2;
    try (LocalGroup group = patient(ranks)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        communicator.barrier();
                        if (communicator.rank() != missing) {
                          communicator.allReduce(Tensor.allocate(DType.F32, 4), ReduceOp.SUM);
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining(" is in all-reduce #")
          .hasMessageContaining(", and rank " + missing + ", whose body has returned, never entered it")
          .satisfies(failure -> assertThat(faultyRanks(failure)).containsExactly(missing));
    }
  }

  @Test
  void aRankWhoseBodyHasReturnedIsNamedToThoseInAsynchronousCalls() {
    try (LocalGroup group = patient(3)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        if (communicator.rank() != 1) {
                          communicator.runAsync(Collectives::barrier).await();
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining(" is in barrier #")
          .hasMessageContaining(", and rank 1, whose body has returned, never entered it");
    }
  }

  @Test
  void aRankWhoseBodyHasReturnedIsNamedToThoseInASplit() {
    Communicator[] kept = new Communicator[4];
    try (LocalGroup group = patient(4)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        int rank = communicator.rank();
                        kept[rank] = communicator.split(rank % 2, 0);
                        kept[rank].barrier();
                        if (rank != 3) {
                          kept[rank].barrier();
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("of the group's ranks, rank 1 is in barrier #")
          .hasMessageContaining(", and rank 3, whose body has returned, never entered it");
    } finally {
      for (Communicator each : kept) {
        each.close();
      }
    }
  }

  @Test
  void aRankWhoseBodyHasReturnedNotifiesNobody() {
    try (LocalGroup group = patient(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        try (Window window = communicator.window(Signals.bytes(1, 2))) {
                          Signals signals = window.signals(1);
                          if (communicator.rank() == 0) {
                            signals.await(1, 0, 1);
                          }
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("rank 0 is in a signal's await, and rank 1, whose body has returned");
    }
  }

  /** Not what a rank is told that learns of it at its next call. */
  @Test
  void ofAFailureThatAllRanksAreToldTheOneThatFoundItIsThrown() {
    for (int round = 0; round < 50; round++) {
      try (LocalGroup group = patient(2)) {
        assertThatThrownBy(
                () ->
                    group.run(
                        communicator -> {
                          Tensor tensor = Tensor.allocate(DType.F32, 4);
                          communicator.broadcast(tensor, communicator.rank());
                          communicator.barrier();
                        }))
            .isInstanceOf(MismatchException.class)
            .hasMessageNotContaining("the communicator is dead")
            .hasMessageContaining("root 0")
            .hasMessageContaining("root 1")
            .hasNoSuppressedExceptions();
      }
    }
  }

  @Test
  void whatDependsOnAnOperationMayMakeCallsOfARankWhoseBodyHasReturned() {
    try (LocalGroup group = patient(2)) {
      group.run(
          communicator -> {
            if (communicator.rank() == 0) {
              communicator.barrier();
              communicator.barrier();
              return;
            }
            communicator
                .runAsync(Collectives::barrier)
                .toCompletableFuture()
                .thenRun(
                    () -> {
                      sleep(1_000);
                      communicator.barrier();
                    });
          });
    }
  }

  /** Also where the communicator of that operation is there no more. */
  @Test
  void whatDependsOnAnOperationOfADroppedCommunicatorMayMakeCalls() {
    try (LocalGroup group = patient(2)) {
      group.run(
          communicator -> {
            Communicator child = communicator.split(0, 0);
            if (communicator.rank() == 0) {
              child.barrier();
              communicator.barrier();
              child.close();
              return;
            }
            Operation<Void> operation = child.runAsync(Collectives::barrier);
            operation
                .toCompletableFuture()
                .thenRun(
                    () -> {
                      for (int i = 0; i < 10; i++) {
                        System.gc();
                        sleep(100);
                      }
                      communicator.barrier();
                    });
            operation.await();
            child.close();
          });
    }
  }

  @Test
  void aCommunicatorWhoseOriginIsDroppedIsToldToo() {
    Communicator[] kept = new Communicator[2]; // the last ones, and not those that they came from
    try (LocalGroup group = patient(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        Communicator last = communicator.split(0, 0).split(0, 0);
                        kept[communicator.rank()] = last;
                        for (int i = 0; i < 5; i++) {
                          System.gc();
                          sleep(20);
                        }
                        if (communicator.rank() == 0) {
                          last.barrier();
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("rank 0 is in barrier #");
    } finally {
      for (Communicator each : kept) {
        each.close();
      }
    }
  }

  @Test
  void eachOfSeveralCommunicatorsIsToldOfARankWhoseBodyHasReturned() {
    try (LocalGroup group = patient(6)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        Communicator pair = communicator.split(communicator.rank() / 2, 0);
                        if (communicator.rank() % 2 == 0) {
                          pair.barrier();
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .satisfies(failure -> assertThat(failure.getSuppressed()).hasSize(2));
    }
  }

  @Test
  void aRankWhoseBodyHasReturnedIsNamedAfterManyOneSidedOperations() {
    try (LocalGroup group = patient(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        try (Window window = communicator.window(Signals.bytes(1, 2))) {
                          Signals signals = window.signals(1);
                          for (int i = 1; i <= 200 && communicator.rank() == 1; i++) {
                            signals.notify(0, 0, i);
                          }
                          if (communicator.rank() == 0) {
                            communicator.barrier();
                          }
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("rank 0 is in barrier #");
    }
  }

  /** Whose body goes on, and who has no operation in common with it in this run. */
  @Test
  void anOperationThatIsQueuedMayEndInTheNextRun() {
    try (LocalGroup group = patient(2)) {
      List<Operation<Void>> queued = new CopyOnWriteArrayList<>();
      group.run(
          communicator -> {
            if (communicator.rank() == 1) {
              queued.add(communicator.runAsync(Collectives::barrier));
              sleep(1_000);
            }
          });
      group.run(
          communicator -> {
            if (communicator.rank() == 0) {
              communicator.barrier();
            } else {
              queued.get(0).await();
            }
          });
    }
  }

  @Test
  void inACommunicatorThatShrankARankWhoseBodyHasReturnedIsNamedToo() {
    Communicator[] kept = new Communicator[3];
    try (LocalGroup group = patient(3)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        int rank = communicator.rank();
                        if (rank == 2) {
                          communicator.abort("over");
                          return;
                        }
                        assertThatThrownBy(communicator::barrier)
                            .isInstanceOf(AbortedException.class);
                        kept[rank] = communicator.shrink(Duration.ofSeconds(20));
                        if (rank == 1) {
                          kept[rank].barrier();
                        }
                      }))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("rank 1 is in barrier #")
          .hasMessageContaining(", and rank 0, whose body has returned");
    } finally {
      kept[0].close();
      kept[1].close();
    }
  }

  /** Its own thread makes calls yet; and who waits for nobody waits for it neither. */
  @Test
  void aRankWhoseBodyHasReturnedMayHaveCallsQueued() {
    try (LocalGroup group = patient(3)) {
      group.run(
          communicator -> {
            communicator.barrier();
            if (communicator.rank() == 1) {
              communicator.runAsync(
                  queued -> {
                    sleep(1_000);
                    queued.barrier();
                  });
              return;
            }
            if (communicator.rank() == 2) {
              sleep(700);
            }
            communicator.barrier();
            sleep(700);
          });
      group.run(Communicator::barrier);
    }
  }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 8})
  void aPassedDeadlineNamesTheRankThatNeverCame(int ranks) {
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(SHORT);
    int missing = ranks - 1;
    try (LocalGroup group = LocalGroup.of(ranks, options)) {
      Throwable[] failures = new Throwable[ranks];
      double[] tookMs = new double[ranks];
      group.run(
          communicator -> {
            while (communicator.rank() == missing && communicator.failure().isEmpty()) {
              sleep(1);
            }
            if (communicator.rank() != missing) {
              long start = System.nanoTime();
              failures[communicator.rank()] = catchThrowable(communicator::barrier);
              tookMs[communicator.rank()] = (System.nanoTime() - start) / 1e6;
            }
          });
      for (int rank = 0; rank < missing; rank++) {
        assertThat(failures[rank])
            .isInstanceOf(DeadlineExceededException.class)
            .hasMessageContaining("rank " + missing);
        DeadlineExceededException timeout = (DeadlineExceededException) failures[rank];
        assertThat(timeout.faultyRanks()).containsExactly(missing);
        assertThat(timeout.operation()).isEqualTo("barrier");
        assertThat(timeout.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
      }
      // The first to come waits as long; who comes later is told then, too.
      assertThat(Arrays.stream(tookMs).max().orElse(0))
          .isBetween(SHORT.toMillis() - 50.0, SHORT.toMillis() + 30_000.0);
      assertThat(group.communicator(missing).failure().orElseThrow())
          .isInstanceOf(DeadlineExceededException.class);
      assertThatThrownBy(group.communicator(missing)::barrier)
          .isInstanceOf(DeadlineExceededException.class);
    }
  }

  @Test
  void abortEndsAWaitAndCarriesTheReason() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Caller blocked = new Caller(group.communicator(0)::barrier);
      long start = System.nanoTime();
      group.communicator(1).abort("out of patience \u00fc");
      assertThat(blocked.leftAfterMs(start)).isLessThan(30_000);
      assertThat(blocked.failure.get())
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("out of patience \u00fc");
      assertThat(faultyRanks(blocked.failure.get())).containsExactly(1);
      assertThatThrownBy(group.communicator(1)::barrier).isInstanceOf(AbortedException.class);
    }
  }

  @Test
  void abortTakesAnyText() {
    for (String reason : new String[] {null, "", "nul \0 inside", "x".repeat(5000)}) {
      try (LocalGroup group = LocalGroup.of(1)) {
        group.communicator(0).abort(reason);
        assertThatThrownBy(group.communicator(0)::barrier).isInstanceOf(AbortedException.class);
      }
    }
  }

  @Test
  void closeEndsTheCallInProgressFirst() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Caller blocked = new Caller(group.communicator(0)::barrier);
      long start = System.nanoTime();
      group.communicator(0).close();
      assertThat(blocked.leftAfterMs(start)).isLessThan(30_000);
      assertThat(blocked.failure.get()).isInstanceOf(ClosedException.class);
      assertThatThrownBy(group.communicator(0)::barrier).isInstanceOf(ClosedException.class);
      group.communicator(0).close();
    }
  }

  @Test
  void aPeerOfAClosedRankIsToldWhichOne() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Caller blocked = new Caller(group.communicator(0)::barrier);
      long start = System.nanoTime();
      group.communicator(1).close();
      assertThat(blocked.leftAfterMs(start)).isLessThan(30_000);
      assertThat(blocked.failure.get())
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("rank 1");
      assertThat(((AbortedException) blocked.failure.get()).faultyRanks()).containsExactly(1);
    }
  }

  @Test
  void anOperationHasTheDeadlineItIsGiven() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Collectives quick = group.communicator(0).withDeadline(SHORT);
      long start = System.nanoTime();
      assertThatThrownBy(quick::barrier)
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("rank 1");
      assertThat((System.nanoTime() - start) / 1e6).isBetween((double) SHORT.toMillis(), 30_000.0);
    }
  }

  @Test
  void anInterruptEndsABlockedCallAndStaysSet() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Caller blocked = new Caller(group.communicator(0)::barrier);
      assertThat(blocked.interrupt()).isLessThan(30_000);
      assertThat(blocked.failure.get())
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("interrupted");
      assertThat(faultyRanks(blocked.failure.get())).containsExactly(0);
      assertThat(blocked.interruptFlag).isTrue();
      assertThat(group.communicator(1).failure()).isPresent();
    }
  }

  @Test
  void anInterruptedThreadMayStillMakeCallsThatDontBlock() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Thread.currentThread().interrupt();
      for (int i = 0; i < 1000; i++) {
        group.communicator(0).barrier();
      }
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void theFirstFailureIsRethrownAndPeersDontHang() {
    try (LocalGroup group = LocalGroup.of(3)) {
      IOException cause = new IOException("disk on fire");
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        if (communicator.rank() == 1) {
                          throw cause;
                        }
                        communicator.barrier();
                      }))
          .isSameAs(cause)
          .satisfies(
              failure ->
                  assertThat(failure.getSuppressed())
                      .hasSize(2)
                      .allSatisfy(
                          other ->
                              assertThat(other)
                                  .isInstanceOf(AbortedException.class)
                                  .hasMessageContaining("disk on fire")
                                  .satisfies(e -> assertThat(faultyRanks(e)).containsExactly(1))));
      assertThatThrownBy(() -> group.run(Communicator::barrier))
          .isInstanceOf(AbortedException.class);
    }
  }

  @Test
  void aThrowingBodyEndsSplitCommunicatorsToo() {
    try (LocalGroup group = LocalGroup.of(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        try (Communicator pair = communicator.split(0, 0)) {
                          if (pair.rank() == 0) {
                            throw new AssertionError("rank 0 gives up");
                          }
                          pair.barrier();
                        }
                      }))
          .isInstanceOf(AssertionError.class);
    }
  }

  @Test
  void anInterruptOfRunReachesTheRanks() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      AtomicReference<Throwable> failure = new AtomicReference<>();
      AtomicReference<Boolean> flag = new AtomicReference<>();
      Thread caller =
          new Thread(
              () -> {
                failure.set(
                    catchThrowable(
                        () ->
                            group.run(
                                communicator -> {
                                  if (communicator.rank() == 0) {
                                    communicator.barrier();
                                  } else {
                                    Thread.sleep(30_000);
                                  }
                                })));
                flag.set(Thread.currentThread().isInterrupted());
              });
      caller.start();
      Thread.sleep(100);
      caller.interrupt();
      caller.join(2000);
      assertThat(caller.isAlive()).isFalse();
      assertThat(failure.get()).isNotNull();
      assertThat(flag.get()).isTrue();
    }
  }

  @Test
  void ranksThatDisagreeAreBothNamed() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Throwable[] failures = new Throwable[2];
      group.run(
          communicator -> {
            Tensor in = Tensor.allocate(communicator.rank() == 0 ? DType.F32 : DType.I32, 4);
            Tensor out = Tensor.allocate(in.dtype(), 4);
            failures[communicator.rank()] = catchThrowable(() -> communicator.allToAll(in, out));
          });
      for (Throwable failure : failures) {
        assertThat(failure)
            .isInstanceOf(MismatchException.class)
            .hasMessageContaining("f32")
            .hasMessageContaining("i32");
        assertThat(((MismatchException) failure).faultyRanks()).containsExactly(0, 1);
      }
    }
  }

  @Test
  void closingAGroupEndsARunInProgress() throws Exception {
    LocalGroup group = LocalGroup.of(3);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread runner =
        new Thread(
            () ->
                failure.set(
                    catchThrowable(
                        () ->
                            group.run(
                                communicator -> {
                                  while (true) {
                                    communicator.barrier();
                                  }
                                }))));
    runner.start();
    Thread.sleep(50);
    group.close();
    runner.join(5000);
    assertThat(runner.isAlive()).isFalse();
    assertThat(failure.get()).isInstanceOf(WindlassException.class);
  }

  @Test
  void oneThreadAtATimeCallsARank() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Caller blocked = new Caller(group.communicator(0)::barrier);
      assertThatThrownBy(group.communicator(0)::barrier)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("one thread at a time")
          .hasMessageContaining(blocked.thread.getName());
      group.communicator(1).barrier();
      blocked.thread.join();
      assertThat(blocked.failure.get()).isNull();
    }
  }

  @Test
  void closeRacesWithCallsWithoutACrash() throws Exception {
    for (int round = 0; round < 200; round++) {
      LocalGroup group = LocalGroup.of(2);
      Thread closer = new Thread(group::close);
      Throwable failure =
          catchThrowable(
              () ->
                  group.run(
                      communicator -> {
                        Tensor in = Tensor.allocate(DType.F32, 64);
                        Tensor out = Tensor.allocate(DType.F32, 64);
                        if (communicator.rank() == 0) {
                          closer.start();
                        }
                        while (true) {
                          communicator.allToAll(in, out);
                          in.close();
                        }
                      }));
      closer.join();
      assertThat(failure).isInstanceOf(WindlassException.class);
    }
  }
}
