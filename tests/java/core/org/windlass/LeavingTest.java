// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.MismatchException;

/** What {@code close()} says of operations in which ranks disagreed and that returned normally. */
@Timeout(180)
class LeavingTest {
  private static final boolean LONG = Boolean.getBoolean("windlass.long");

  /** Small: the root waits for nobody. */
  private static void broadcastFrom(int root, Communicator communicator) {
    Tensor tensor = Tensor.allocate(DType.F32, 4);
    communicator.broadcast(tensor, tensor, root);
  }

  private static void everyRankIsTheRoot(Communicator communicator) {
    broadcastFrom(communicator.rank(), communicator);
  }

  @Test
  void closingAGroupThrowsTheMismatchThatNoCallReturned() {
    LocalGroup group = LocalGroup.of(3);
    group.run(LeavingTest::everyRankIsTheRoot);
    assertThatThrownBy(group::close)
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("broadcast(4 x f32, root 0)")
        .hasMessageContaining("broadcast(4 x f32, root 1)")
        .satisfies(
            failure -> {
              assertThat(((MismatchException) failure).faultyRanks()).containsExactly(0, 1);
              assertThat(((MismatchException) failure).operation()).isEqualTo("broadcast");
            });
    for (int rank = 0; rank < 3; rank++) {
      assertThatThrownBy(group.communicator(rank)::barrier).isInstanceOf(ClosedException.class);
    }
    group.close();
  }

  @Test
  void anOperationOfOneRankAloneIsToldAtClose() {
    assertThatThrownBy(
            () -> {
              try (LocalGroup group = LocalGroup.of(2)) {
                group.run(
                    communicator -> {
                      if (communicator.rank() == 1) {
                        Tensor in = Tensor.allocate(DType.F32, 4);
                        communicator.reduce(in, in, ReduceOp.SUM, 0);
                      }
                    });
              }
            })
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("rank 1 calls reduce(4 x f32, sum, root 0)")
        .hasMessageContaining("rank 0 closed the communicator without it");
  }

  @Test
  void theMismatchIsSuppressedInWhatTheBodyThrows() {
    assertThatThrownBy(
            () -> {
              try (LocalGroup group = LocalGroup.of(2)) {
                group.run(LeavingTest::everyRankIsTheRoot);
                throw new IllegalStateException("of the caller");
              }
            })
        .isInstanceOf(IllegalStateException.class)
        .satisfies(
            failure ->
                assertThat(failure.getSuppressed())
                    .singleElement()
                    .isInstanceOf(MismatchException.class));
  }

  @Test
  void aRunThrowsWhatClosingASplitSays() {
    try (LocalGroup group = LocalGroup.of(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        try (Communicator pair = communicator.split(0, 0)) {
                          everyRankIsTheRoot(pair);
                        }
                      }))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("broadcast(4 x f32, root 1)");
    }
  }

  @Test
  void aRankThatWasToldIsToldNoMore() {
    try (LocalGroup group = LocalGroup.of(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        everyRankIsTheRoot(communicator);
                        communicator.barrier();
                      }))
          .isInstanceOf(MismatchException.class);
    }
  }

  @Test
  void aThrowableThatHasNoTextEndsThePeersAllTheSame() {
    LocalGroup group = LocalGroup.of(2);
    long start = System.nanoTime();
    assertThat(
            catchThrowable(
                () ->
                    group.run(
                        communicator -> {
                          if (communicator.rank() == 0) {
                            throw new NoText();
                          }
                          communicator.barrier();
                        })))
        .isInstanceOf(NoText.class);
    assertThat(System.nanoTime() - start).isLessThan(30_000_000_000L);
    group.close();
  }

  private static final class NoText extends RuntimeException {
    private static final long serialVersionUID = 1;

    @Override
    public String getMessage() {
      throw new IllegalStateException("no text");
    }
  }

  @Test
  void whatARunHasThrownIsThrownNoMore() {
    LocalGroup group = LocalGroup.of(2);
    assertThatThrownBy(
            () ->
                group.run(
                    communicator -> {
                      Tensor tensor = Tensor.allocate(DType.F32, 4 + communicator.rank());
                      communicator.broadcast(tensor, tensor, 0);
                    }))
        .isInstanceOf(MismatchException.class);
    group.close();
  }

  @Test
  void anOperationOfOneRankOnAThreadThatHasEndedIsToldAtClose() throws Exception {
    LocalGroup group = LocalGroup.of(2);
    Thread caller = new Thread(() -> broadcastFrom(1, group.communicator(1)));
    caller.start();
    caller.join();
    assertThatThrownBy(group::close)
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("rank 1 calls broadcast(4 x f32, root 1)");
  }

  @Test
  void anAsynchronousOperationOfOneRankIsToldAtClose() {
    LocalGroup group = LocalGroup.of(2);
    group.communicator(1).runAsync(communicator -> broadcastFrom(1, group.communicator(1))).await();
    assertThatThrownBy(group::close).isInstanceOf(MismatchException.class);
  }

  @Test
  void aGroupAbortedAndClosedBetweenCallsOfItsThreadsEndsThemAndIsQuiet() throws Exception {
    for (int round = 0; round < (LONG ? 1000 : 100); round++) {
      LocalGroup group = LocalGroup.of(2);
      List<Throwable> ends = new CopyOnWriteArrayList<>();
      List<Thread> callers = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        Communicator communicator = group.communicator(rank);
        Thread caller =
            new Thread(
                () ->
                    ends.add(
                        catchThrowable(
                            () -> {
                              while (true) {
                                broadcastFrom(0, communicator);
                              }
                            })));
        caller.start();
        callers.add(caller);
      }
      while (group.communicator(1).report().ranks().get(1).recent().size() < 10) {
        Thread.onSpinWait();
      }
      group.communicator(round % 2).abort("over");
      group.close();
      for (Thread caller : callers) {
        caller.join();
      }
      assertThat(ends)
          .hasSize(2)
          .allMatch(end -> end instanceof ClosedException || end instanceof AbortedException);
    }
  }

  @Test
  void aGroupClosedDuringARunLeavesItToTheRunToSayWhatItCut() throws Exception {
    for (int round = 0; round < (LONG ? 1000 : 50); round++) {
      LocalGroup group = LocalGroup.of(2);
      Thread runner =
          new Thread(
              () ->
                  catchThrowable(
                      () ->
                          group.run(
                              communicator -> {
                                while (true) {
                                  broadcastFrom(0, communicator);
                                }
                              })));
      runner.start();
      while (group.communicator(1).report().ranks().get(1).recent().size() < 10) {
        Thread.onSpinWait();
      }
      group.close();
      runner.join();
    }
  }
}
