// SPDX-License-Identifier: Apache-2.0
package org.windlass.message;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.PointToPoint.ANY_SOURCE;
import static org.windlass.PointToPoint.ANY_TAG;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import org.junit.jupiter.api.Timeout;
import org.windlass.Collectives;
import org.windlass.DType;
import org.windlass.Operation;
import org.windlass.Received;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** Sends and receives: what arrives, in every launch; random programs; and how messages end. */
@Timeout(120)
class MessagesTest {
  private static final long[] SIZES = {0, 1, 5, 6, 7, 511, 512, 513, 70_000, 131_072};

  private static long value(int round, int from, int to, long i) {
    return round * 1_000_003L + from * 8_191L + to * 131L + i;
  }

  private static Tensor filled(long count, int round, int from, int to) {
    Tensor tensor = Tensor.allocate(DType.I64, count);
    for (long i = 0; i < count; i++) {
      tensor.setLong(value(round, from, to, i), i);
    }
    return tensor;
  }

  private static void check(Tensor tensor, long count, int round, int from, int to) {
    for (long i = 0; i < count; i += Math.max(1, count / 97)) {
      assertThat(tensor.getLong(i)).isEqualTo(value(round, from, to, i));
    }
    if (count > 0) {
      assertThat(tensor.getLong(count - 1)).isEqualTo(value(round, from, to, count - 1));
    }
  }

  @OnRanks({1, 2, 3, 4, 8})
  void everySizeArrivesBetweenAllPairs(Ranks ranks) {
    ranks.run(
        comm -> {
          int rank = comm.rank();
          int round = 0;
          for (long count : SIZES) {
            Tensor in = Tensor.allocate(DType.I64, count + 3);
            for (int from = 0; from < comm.size(); from++) {
              for (int to = 0; to < comm.size(); to++) {
                round++;
                Received received = null;
                Tensor out = filled(count, round, from, to);
                if (from == to && rank == from) {
                  received = comm.sendReceive(out, to, in, from, round);
                } else if (rank == from) {
                  comm.send(out, to, round);
                  out.fill(0);
                } else if (rank == to) {
                  received = comm.receive(in, from, round);
                }
                if (rank == to) {
                  assertThat(received).isEqualTo(new Received(from, round, count));
                  check(in, count, round, from, to);
                }
              }
            }
          }
        });
  }

  @OnRanks({2, 3, 8})
  void messagesGoAroundARing(Ranks ranks) {
    ranks.run(
        comm -> {
          int next = (comm.rank() + 1) % comm.size();
          int previous = (comm.rank() + comm.size() - 1) % comm.size();
          for (long count : SIZES) {
            Tensor in = Tensor.allocate(DType.I64, count);
            Tensor back = Tensor.allocate(DType.I64, count);
            Tensor out = filled(count, 1, comm.rank(), next);
            Tensor left = filled(count, 2, comm.rank(), previous);
            comm.sendReceive(out, next, in, previous, 0);
            check(in, count, 1, previous, comm.rank());
            List<Received> received =
                comm.group(
                    messages -> {
                      messages.send(out, next, 1);
                      messages.receive(in, previous, 1);
                      messages.send(left, previous, 2);
                      messages.receive(back, next, ANY_TAG);
                    });
            assertThat(received)
                .containsExactly(new Received(previous, 1, count), new Received(next, 2, count));
            check(back, count, 2, next, comm.rank());
          }
        });
  }

  @OnRanks({2, 4})
  void asynchronousMessagesDelayNothing(Ranks ranks) {
    ranks.run(
        comm -> {
          int other = comm.rank() ^ 1;
          Tensor out = filled(50_000, 1, comm.rank(), other);
          Tensor in = Tensor.allocate(DType.I64, 50_000);
          Operation<Void> send = comm.sendAsync(out, other, 9);
          comm.barrier();
          Operation<Void> barrier = comm.runAsync(Collectives::barrier);
          barrier.await(ofSeconds(20));
          assertThat(send.isDone()).isFalse();
          comm.barrier();
          Operation<Received> receive = comm.receiveAsync(in, ANY_SOURCE, ANY_TAG);
          assertThat(receive.await(ofSeconds(20))).isEqualTo(new Received(other, 9, 50_000));
          send.await(ofSeconds(20));
          check(in, 50_000, 1, other, comm.rank());
          Received again = comm.sendReceiveAsync(out, other, in, other, 3).await();
          assertThat(again.tag()).isEqualTo(3);
          comm.barrier();
        });
  }

  @OnRanks({2, 3, 4})
  void randomProgramsInWhichAllSendFirstEnd(Ranks ranks) {
    long seed = new Random().nextLong();
    System.out.println("randomProgramsInWhichAllSendFirstEnd seed " + seed);
    ranks.run(
        comm -> {
          Random random = new Random(seed);
          for (int program = 0; program < 100; program++) {
            int count = 1 + random.nextInt(20);
            List<Operation<?>> operations = new ArrayList<>();
            List<Runnable> receives = new ArrayList<>();
            List<Runnable> checks = new ArrayList<>();
            for (int i = 0; i < count; i++) {
              int from = random.nextInt(comm.size());
              int to = random.nextInt(comm.size());
              int tag = random.nextInt(2);
              int number = i;
              long elements = random.nextInt(random.nextBoolean() ? 6 : 3000);
              if (comm.rank() == from) {
                operations.add(comm.sendAsync(filled(elements, i, from, to), to, tag));
              }
              if (comm.rank() == to) {
                Tensor in = Tensor.allocate(DType.I64, elements);
                receives.add(() -> operations.add(comm.receiveAsync(in, from, tag)));
                checks.add(() -> check(in, elements, number, from, to));
              }
            }
            if (random.nextInt(4) == 0) {
              comm.barrier();
            }
            receives.forEach(Runnable::run);
            operations.forEach(operation -> operation.await(ofSeconds(60)));
            checks.forEach(Runnable::run);
          }
        });
  }

  @OnRanks(2)
  void callsOfThreadsThatMustNotBlockDelayNothing(Ranks ranks) {
    ranks.run(
        comm -> {
          int other = 1 - comm.rank();
          Tensor out = filled(50_000, 1, comm.rank(), other);
          Tensor in = Tensor.allocate(DType.I64, 50_000);
          ForkJoinPool pool = new ForkJoinPool(2);
          try {
            var send = CompletableFuture.runAsync(() -> comm.send(out, other, 1), pool);
            comm.barrier();
            var receive = CompletableFuture.supplyAsync(() -> comm.receive(in, other, 1), pool);
            assertThat(receive.join()).isEqualTo(new Received(other, 1, 50_000));
            send.join();
            check(in, 50_000, 1, other, comm.rank());
          } finally {
            pool.shutdown();
          }
        });
  }

  @OnRanks(2)
  void aReceiveWithoutAMessageIsWithdrawn(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor in = Tensor.allocate(DType.I64, 10);
          Operation<Received> receive = comm.receiveAsync(in, ANY_SOURCE, 1);
          assertThat(receive.cancel()).isTrue();
          assertThatThrownBy(receive::await).isInstanceOf(CancellationException.class);
          comm.barrier();
          assertThat(comm.failure()).isEmpty();
        });
  }

  @OnRanks(2)
  void aCancelBesideTheMessageEndsNothing(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor tensor = Tensor.allocate(DType.I64, 4);
          for (int i = 0; i < 300; i++) {
            if (comm.rank() == 0) {
              comm.send(tensor, 1, i);
              continue;
            }
            Operation<Received> receive = comm.receiveAsync(tensor, 0, i);
            for (int spin = 0; spin < i % 50 * 20; spin++) {
              Thread.onSpinWait();
            }
            if (receive.cancel()) {
              comm.receive(tensor, 0, i);
            } else {
              assertThat(receive.await()).isEqualTo(new Received(0, i, 4));
            }
          }
          comm.barrier();
        });
  }

  @OnRanks(2)
  void mismatchesNameBothRanksAndTheTag(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor tensor = Tensor.allocate(comm.rank() == 0 ? DType.I32 : DType.F32, 100);
          Throwable failure =
              catchThrowable(
                  () -> {
                    if (comm.rank() == 0) {
                      comm.send(tensor, 1, 7);
                      comm.barrier();
                    } else {
                      comm.receive(tensor, 0, 7);
                    }
                  });
          assertThat(failure)
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining(
                  "rank 1: receive(at most 100 x f32 from rank 0, tag 7): rank 0 sends 100 x i32"
                      + " with tag 7; dtypes must agree");
          assertThat(((WindlassException) failure).faultyRanks()).containsExactly(0, 1);
        });
  }

  @OnRanks(2)
  void deadlinesAbortsAndClosesEndMessages(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor tensor = Tensor.allocate(DType.F32, 50_000);
          if (comm.rank() == 0) {
            Operation<Void> send = comm.withDeadline(ofMillis(100)).sendAsync(tensor, 1, 3);
            assertThatThrownBy(send::await)
                .isInstanceOf(DeadlineExceededException.class)
                .hasMessageContaining(
                    "rank 0 waited 0.100 s in send(50000 x f32 to rank 1, tag 3): rank 1 has not"
                        + " received it");
          } else {
            assertThatThrownBy(comm::barrier).isInstanceOf(DeadlineExceededException.class);
          }
        });
  }

  @OnRanks(2)
  void aCloseEndsMessagesOfItsRankAndItsPeer(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor tensor = Tensor.allocate(DType.F32, 50_000);
          if (comm.rank() == 1) {
            Operation<Received> receive = comm.receiveAsync(tensor, 0, 3);
            comm.close();
            assertThatThrownBy(() -> receive.await(ofSeconds(20)))
                .isInstanceOf(ClosedException.class);
          } else {
            assertThatThrownBy(() -> comm.send(tensor, 1, 4))
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("rank 1 closed the communicator, and rank 0 waits in send(");
          }
        });
  }

  @OnRanks(1)
  void wrongCallsAreRefused(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor tensor = Tensor.allocate(DType.F32, 4, 4);
          assertThatThrownBy(() -> comm.send(tensor.narrow(1, 1, 2), 0, 0))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("send: tensor (")
              .hasMessageContaining("is not contiguous");
          assertThatThrownBy(() -> comm.send(tensor, 1, 0))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("send: peer is 1; it must lie in [0, 1)");
          assertThatThrownBy(() -> comm.receive(tensor, 0, -2))
              .hasMessageContaining("receive: tag is -2; it must be 0 or more, or any tag");
          assertThatThrownBy(() -> comm.sendReceive(tensor, 0, tensor, 0, 0))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("overlaps");
          assertThatThrownBy(() -> comm.group(messages -> comm.allReduce(tensor, ReduceOp.SUM)))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("call collectives and other operations before or after");
          assertThat(comm.group(messages -> {})).isEmpty();
          comm.barrier();
        });
  }
}
