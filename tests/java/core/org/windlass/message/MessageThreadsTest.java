// SPDX-License-Identifier: Apache-2.0
package org.windlass.message;

import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.PointToPoint.ANY_SOURCE;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Collectives;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Operation;
import org.windlass.Received;
import org.windlass.Tensor;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;

/** The threads that call messages and complete them. */
@Timeout(120)
class MessageThreadsTest {
  private static final int LONG = 50_000;

  private static Tensor tensor() {
    return Tensor.allocate(DType.I64, LONG);
  }

  /** A callback runs on the thread that completes the next operation. */
  @Test
  void aCallbackMayNotAwaitWhatItsThreadCompletes() throws Exception {
    CountDownLatch isQueued = new CountDownLatch(1);
    CountDownLatch hasCalled = new CountDownLatch(1);
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            if (comm.rank() == 0) {
              comm.barrier();
              comm.send(tensor(), 1, 1);
              assertThat(isQueued.await(20, TimeUnit.SECONDS)).isTrue();
              comm.send(tensor(), 1, 2);
              assertThat(hasCalled.await(20, TimeUnit.SECONDS)).isTrue();
              comm.barrier();
              return;
            }
            Operation<Received> first = comm.receiveAsync(tensor(), 0, 1);
            Operation<Received> second = comm.receiveAsync(tensor(), 0, 2);
            CompletableFuture<Throwable> awaited =
                first.toCompletableFuture().thenApply(received -> catchThrowable(second::await));
            // A call that is queued makes other calls of the rank asynchronous ones.
            CompletableFuture<Throwable> called =
                second
                    .toCompletableFuture()
                    .thenApply(received -> catchThrowable(() -> comm.receive(tensor(), 0, 3)));
            comm.barrier();
            assertThat(awaited.get(20, TimeUnit.SECONDS))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("waits for the one that awaits it");
            Operation<Void> queued = comm.runAsync(Collectives::barrier);
            isQueued.countDown();
            assertThat(called.get(20, TimeUnit.SECONDS))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("waits for the one that awaits it");
            hasCalled.countDown();
            queued.await();
          });
    }
  }

  @Test
  void aReportNamesTheRankThatASendWaitsFor() throws Exception {
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            if (comm.rank() == 0) {
              comm.sendAsync(tensor(), 2, 1).await();
            } else if (comm.rank() == 2) {
              while (comm.report().ranks().get(0).waitsFor().isEmpty()) {
                Thread.sleep(1);
              }
              assertThat(comm.report().ranks().get(0).waitsFor()).containsExactly(2);
              comm.receive(tensor(), 0, 1);
            }
          });
    }
  }

  @Test
  void aGroupTakesNoOtherOperation() {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            Tensor tensor = tensor();
            List<Runnable> others =
                List.of(
                    () -> comm.send(tensor, 0, 0),
                    () -> comm.receive(tensor, 0, 0),
                    () -> comm.sendAsync(tensor, 0, 0),
                    () -> comm.receiveAsync(tensor, 0, 0),
                    () -> comm.group(messages -> {}),
                    () -> comm.groupAsync(messages -> messages.send(tensor, 0, 0)),
                    () -> comm.runAsync(Collectives::barrier),
                    () -> comm.split(0, 0),
                    () -> comm.window(64),
                    comm::barrier);
            for (Runnable other : others) {
              assertThatThrownBy(() -> comm.group(messages -> other.run()))
                  .isInstanceOf(InvalidArgumentException.class)
                  .hasMessageContaining("call collectives and other operations before or after");
            }
            comm.barrier();
          });
    }
  }

  @Test
  void aCloseEndsSendsThatBeginBesideIt() throws Exception {
    for (int round = 0; round < 20; round++) {
      try (LocalGroup group = LocalGroup.of(2)) {
        group.run(
            comm -> {
              if (comm.rank() == 1) {
                assertThat(catchThrowable(() -> receiveUntilItFails(comm)))
                    .isInstanceOf(WindlassException.class);
                return;
              }
              Tensor tensor = tensor();
              List<Operation<Void>> sends = new ArrayList<>();
              Thread closes = new Thread(comm::close);
              closes.start();
              Throwable end =
                  catchThrowable(
                      () -> {
                        while (true) {
                          sends.add(comm.sendAsync(tensor, 1, 0));
                        }
                      });
              closes.join();
              assertThat(end).isInstanceOf(WindlassException.class);
              for (Operation<Void> send : sends) {
                Throwable failure = catchThrowable(() -> send.await(ofSeconds(20)));
                assertThat(failure instanceof DeadlineExceededException).isFalse();
              }
            });
      } catch (WindlassException e) {
        // The close reports that the peer waited.
      }
    }
  }

  private static void receiveUntilItFails(Communicator comm) {
    Tensor tensor = tensor();
    while (true) {
      comm.receive(tensor, ANY_SOURCE, 0);
    }
  }
}
