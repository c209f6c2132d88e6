// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.MismatchException;

/**
 * Asynchronous operations that end otherwise than by themselves: cancelled, taken back, without
 * their tensors, with their communicator; and their futures.
 */
@Timeout(120)
class OperationEndTest {
  @Test
  void cancelBeforeItBeginsTakesItBack() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          communicator -> {
            Gate gate = new Gate(communicator);
            AtomicBoolean ran = new AtomicBoolean();
            Operation<Void> first = communicator.runAsync(c -> ran.set(true));
            Operation<Void> second = communicator.runAsync(Collectives::barrier);
            assertThat(first.cancel()).isTrue();
            assertThat(first.isDone()).isTrue();
            assertThat(first.cancel()).isFalse();
            assertThatThrownBy(first::await).isInstanceOf(CancellationException.class);
            gate.open();
            second.await();
            assertThat(ran).isFalse();
            communicator.barrier();
            assertThat(communicator.failure()).isEmpty();
          });
    }
  }

  @Test
  void aPeerOfWhatWasTakenBackFindsAMismatch() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Throwable[] failures = new Throwable[2];
      group.run(
          communicator -> {
            Gate gate = new Gate(communicator);
            Tensor value = Tensor.allocate(DType.I32, 1);
            Operation<Void> barrier = communicator.runAsync(Collectives::barrier);
            Operation<Void> sum = communicator.runAsync(c -> c.allReduce(value, ReduceOp.SUM));
            if (communicator.rank() == 0) {
              assertThat(barrier.cancel()).isTrue();
            }
            gate.open();
            failures[communicator.rank()] = catchThrowable(sum::await);
          });
      assertThat(failures).allSatisfy(f -> assertThat(f).isInstanceOf(MismatchException.class));
    }
  }

  @Test
  void cancelInProgressAbortsOnEveryRank() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      CountDownLatch begun = new CountDownLatch(1);
      Operation<Void> barrier =
          communicator.runAsync(
              c -> {
                begun.countDown();
                c.barrier();
              });
      begun.await();
      assertThat(barrier.cancel()).isFalse();
      assertThatThrownBy(barrier::await)
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("cancelled")
          .satisfies(e -> assertThat(((AbortedException) e).faultyRanks()).containsExactly(0));
      assertThatThrownBy(group.communicator(1)::barrier).isInstanceOf(AbortedException.class);
    }
  }

  @Test
  void cancelAfterTheEndDoesNothing() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Operation<Void> barrier = group.communicator(0).runAsync(Collectives::barrier);
      barrier.await();
      assertThat(barrier.cancel()).isFalse();
      barrier.await();
      assertThat(group.communicator(0).failure()).isEmpty();
    }
  }

  @Test
  void cancelRacesWithTheBeginning() {
    int takenBack = 0;
    // A cancel that comes while its operation is in progress ends the communicator.
    for (int attempt = 0; attempt < 20 && takenBack == 0; attempt++) {
      takenBack = raceCancelWithTheBeginning();
    }
    assertThat(takenBack).isPositive();
  }

  private static int raceCancelWithTheBeginning() {
    int takenBack = 0;
    try (LocalGroup group = LocalGroup.of(1)) {
      for (int round = 0; round < 2000; round++) {
        AtomicBoolean ran = new AtomicBoolean();
        Operation<Void> operation = group.communicator(0).runAsync(c -> ran.set(true));
        if (round % 2 == 0) {
          Thread.onSpinWait();
        }
        if (operation.cancel()) {
          takenBack++;
          assertThatThrownBy(operation::await).isInstanceOf(CancellationException.class);
          group.communicator(0).barrier();
          assertThat(ran).isFalse();
        } else if (group.communicator(0).failure().isPresent()) {
          break; // it was in progress
        } else {
          operation.await();
          assertThat(ran).isTrue();
        }
      }
    }
    return takenBack;
  }

  @Test
  void aTensorClosedBeforeTheCallBeginsEndsIt() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Window window = communicator.window(1 << 12);
      Tensor plain = Tensor.allocate(DType.F32, 100);
      Tensor distributed = window.tensor(DType.F32, 100);
      Gate gate = new Gate(communicator);
      List<Operation<Void>> operations =
          List.of(
              communicator.runAsync(c -> c.allReduce(plain, ReduceOp.SUM)),
              communicator.runAsync(c -> c.broadcast(distributed, 0)));
      plain.close();
      window.close();
      gate.open();
      for (Operation<Void> operation : operations) {
        assertThatThrownBy(operation::await).isInstanceOf(ClosedException.class);
      }
      communicator.barrier();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void theEndOfTheCommunicatorEndsWhatIsQueued(boolean close) {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      Operation<Void> inProgress = communicator.runAsync(Collectives::barrier);
      AtomicBoolean ran = new AtomicBoolean();
      List<Operation<Void>> queued = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        queued.add(communicator.runAsync(c -> ran.set(true)));
      }
      if (close) {
        communicator.close();
      } else {
        group.communicator(1).abort("enough");
      }
      queued.add(inProgress);
      queued.add(communicator.runAsync(c -> ran.set(true)));
      for (Operation<Void> operation : queued) {
        assertThatThrownBy(() -> operation.await(ofSeconds(20)))
            .isInstanceOf(close ? ClosedException.class : AbortedException.class)
            .hasMessageContaining(close ? "closed" : "enough");
      }
      assertThat(ran).isFalse();
    }
  }

  @Test
  void closeRacesWithSubmissions() throws Exception {
    for (int round = 0; round < 50; round++) {
      LocalGroup group = LocalGroup.of(1);
      Communicator communicator = group.communicator(0);
      Thread closer = new Thread(group::close);
      List<Operation<Void>> operations = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        operations.add(communicator.runAsync(Collectives::barrier));
        if (i == 20) {
          closer.start();
        }
      }
      closer.join();
      for (Operation<Void> operation : operations) {
        Throwable failure = catchThrowable(() -> operation.await(ofSeconds(20)));
        if (failure != null) {
          assertThat(failure).isInstanceOf(ClosedException.class);
        }
      }
    }
  }

  @Test
  void aFutureEndsAsTheOperationDoes() throws Exception {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      AtomicReference<String> ranOn = new AtomicReference<>();
      Gate gate = new Gate(communicator);
      CompletableFuture<Void> after =
          communicator
              .runAsync(Collectives::barrier)
              .toCompletableFuture()
              .thenRun(
                  () -> {
                    communicator.barrier();
                    ranOn.set(Thread.currentThread().getName());
                  });
      assertThat(after).isNotDone();
      gate.open();
      after.get(20, TimeUnit.SECONDS);
      assertThat(ranOn.get()).isEqualTo("windlass-calls-0");

      Operation<Void> failing = communicator.runAsync(c -> c.broadcast((Tensor) null, 0));
      assertThat(failing.toCompletableFuture())
          .failsWithin(ofSeconds(20))
          .withThrowableThat()
          .havingCause()
          .isInstanceOf(NullPointerException.class);
      assertThat(failing.toCompletableFuture()).isCompletedExceptionally();
    }
  }

  @Test
  void cancellingAFutureCancelsTheOperation() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      Gate gate = new Gate(communicator);
      Operation<Void> queued = communicator.runAsync(Collectives::barrier);
      CompletableFuture<Void> future = queued.toCompletableFuture();
      assertThat(future.cancel(false)).isTrue();
      assertThat(future).isCancelled();
      assertThatThrownBy(queued::await).isInstanceOf(CancellationException.class);
      assertThat(communicator.failure()).isEmpty();

      CompletableFuture<Void> inProgress = gate.operation.toCompletableFuture();
      assertThat(inProgress.cancel(true)).isFalse();
      assertThat(communicator.failure()).isPresent();
      gate.open();
    }
  }

  @Test
  void completingAFutureByHandChangesNothingElse() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Gate gate = new Gate(communicator);
      CompletableFuture<Void> future = gate.operation.toCompletableFuture();
      assertThat(future.complete(null)).isTrue();
      assertThat(future.cancel(true)).isFalse();
      assertThat(gate.operation.isDone()).isFalse();
      assertThat(communicator.failure()).isEmpty();
      gate.open();
      gate.operation.await();
    }
  }
}
