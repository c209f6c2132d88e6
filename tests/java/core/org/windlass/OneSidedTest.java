// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/**
 * Put, get and signals: in every launch against element-wise references, over and over; and how
 * they end.
 */
@Timeout(120)
class OneSidedTest {
  private static final Duration SHORT = Duration.ofMillis(200);

  /** A view of a window, made alike on every rank: contiguous, or cut from a larger tensor. */
  private static DistributedTensor view(Window window, DType dtype, Random random) {
    int rows = 1 + random.nextInt(40);
    int columns = 1 + random.nextInt(70);
    DistributedTensor whole = window.tensor(dtype, rows + 3, columns + 5);
    return switch (random.nextInt(4)) {
      case 0 -> whole;
      case 1 -> whole.narrow(0, 2, rows).narrow(1, 1, columns);
      case 2 -> whole.transpose(0, 1);
      default -> whole.narrow(1, 4, columns).transpose(0, 1).select(0, columns - 1);
    };
  }

  private static long value(int round, int writer, long i) {
    return (round * 31L + writer * 7L + i * 13) & 0x7f;
  }

  /** Calls {@code visit} with the index of each element and its number in row-major order. */
  private static void forEach(Tensor tensor, Visit visit) {
    long[] shape = tensor.shape();
    long[] index = new long[shape.length];
    for (long i = 0; i < tensor.numel(); i++) {
      long rest = i;
      for (int d = shape.length - 1; d >= 0; d--) {
        index[d] = rest % shape[d];
        rest /= shape[d];
      }
      visit.element(index, i);
    }
  }

  private interface Visit {
    void element(long[] index, long number);
  }

  private static void check(Tensor tensor, int round, int writer) {
    forEach(
        tensor,
        (index, i) -> {
          if (tensor.getDouble(index) != value(round, writer, i)) {
            throw new AssertionError(
                tensor + " element " + i + " of round " + round + ": " + tensor.getDouble(index));
          }
        });
  }

  @OnRanks({1, 2, 3, 4, 7, 8})
  void putAndGetMoveViewsOfEveryKind(Ranks ranks) {
    long seed = new Random().nextLong();
    System.out.println("putAndGetMoveViewsOfEveryKind seed " + seed);
    ranks.run(
        communicator -> {
          Random random = new Random(seed);
          int n = communicator.size();
          int rank = communicator.rank();
          int round = 0;
          for (DType dtype : new DType[] {DType.U8, DType.BF16, DType.F32, DType.I64}) {
            for (int repeat = 0; repeat < 4; repeat++) {
              round++;
              int step = random.nextInt(n);
              int to = (rank + step) % n;
              int from = (rank - step + n) % n;
              try (Window window = communicator.window(1 << 17)) {
                Signals signals = window.signals(1);
                DistributedTensor inbox = view(window, dtype, random);
                Tensor local =
                    random.nextBoolean()
                        ? Tensor.allocate(dtype, inbox.shape())
                        : window.tensor(dtype, inbox.shape());
                int now = round;
                forEach(local, (index, i) -> local.setDouble(value(now, rank, i), index));
                communicator.barrier();
                window.put(local, to, inbox);
                signals.notify(to, 0, 1);
                local.fill(0); // may be changed at once
                signals.await(from, 0, 1);
                check(inbox, round, from);
                window.get(local, to, inbox);
                check(local, round, rank);
                communicator.barrier();
              }
            }
          }
        });
  }

  static Stream<org.junit.jupiter.params.provider.Arguments> sums() {
    return Ranks.with(new int[] {4}, DType.F32, DType.F16, DType.I32, DType.BF16);
  }

  @ParameterizedTest
  @MethodSource("sums")
  void addsOfAllRanksToTheSameElementsLoseNothing(Ranks ranks, DType dtype) {
    int adds = ranks.rounds(dtype == DType.BF16 ? 60 : 200); // whose sums are exact
    ranks.run(
        communicator -> {
          try (Window window = communicator.window(1 << 15)) {
            DistributedTensor sums = window.tensor(dtype, 64, 64);
            Tensor ones = Tensor.allocate(dtype, 64, 64);
            ones.fill(1);
            for (int i = 0; i < adds; i++) {
              window.accumulate(ones, 2, sums);
              window.accumulate(ones.narrow(0, 3, 9), 1, sums.narrow(0, 3, 9));
            }
            communicator.barrier();
            forEach(
                sums,
                (index, i) -> {
                  boolean isPart = communicator.rank() == 1 && index[0] >= 3 && index[0] < 12;
                  double expected = communicator.rank() == 2 || isPart ? adds * 4 : 0;
                  assertThat(sums.getDouble(index)).isEqualTo(expected);
                });
          }
        });
  }

  @Test
  void anAddOfADTypeThatSomeTargetLacksIsUnsupported() {
    try (LocalGroup group = LocalGroup.of(1);
        Window window = group.communicator(0).window(64)) {
      DistributedTensor sums = window.tensor(DType.I64, 4);
      Tensor terms = Tensor.allocate(DType.I64, 4);
      assertThatThrownBy(() -> window.accumulate(terms, 0, sums))
          .isInstanceOf(UnsupportedException.class)
          .hasMessageContaining("accumulate")
          .hasMessageContaining("f32, f16, bf16, i32, i16 and i8");
      assertThat(group.communicator(0).failure()).isEmpty();
    }
  }

  static Stream<org.junit.jupiter.params.provider.Arguments> ranksAndCores() {
    return Ranks.with(new int[] {2, 3, 4, 8}, 0, 1);
  }

  @ParameterizedTest
  @MethodSource("ranksAndCores")
  void producersAndConsumersReuseTwoSlots(Ranks ranks, int cores) {
    int messages = ranks.rounds(20_000 / (ranks.count() * ranks.count() / 2));
    long seed = new Random().nextLong();
    System.out.println("producersAndConsumersReuseTwoSlots seed " + seed);
    ranks.run(
        () -> CommunicatorOptions.defaults().withCores(cores),
        communicator -> {
          int n = communicator.size();
          int rank = communicator.rank();
          int right = (rank + 1) % n;
          int left = (rank + n - 1) % n;
          Random random = new Random(seed + rank);
          try (Window window = communicator.window(4096 + Signals.bytes(2, n))) {
            DistributedTensor slots = window.tensor(DType.I32, 2, 64);
            DistributedTensor[] slot = {slots.select(0, 0), slots.select(0, 1)};
            Signals signals = window.signals(2); // 0: has come, 1: has been read
            Tensor message = Tensor.allocate(DType.I32, 64);
            int[] values = new int[64];
            for (int i = 1; i <= messages; i++) {
              if (random.nextInt(64) == 0) {
                Thread.yield();
              }
              if (i > 2) {
                signals.await(right, 1, i - 2);
              }
              Arrays.fill(values, rank * messages + i);
              message.copyFrom(values);
              window.put(message, right, slot[i % 2]);
              signals.notify(right, 0, i);
              signals.await(left, 0, i);
              slot[i % 2].copyTo(values);
              for (int value : values) {
                assertThat(value).isEqualTo(left * messages + i);
              }
              signals.notify(left, 1, i);
            }
          }
        });
  }

  /** Two ranks with a window, and a signal that has not been set. */
  private static final class Pair implements AutoCloseable {
    final LocalGroup group = LocalGroup.of(2);
    final Window[] windows;
    final Signals[] signals = new Signals[2];

    Pair() {
      windows = group.call(rank -> rank.window(4096)).toArray(new Window[0]);
      for (int rank = 0; rank < 2; rank++) {
        signals[rank] = windows[rank].signals(1);
      }
    }

    @Override
    public void close() {
      group.close();
      for (Window window : windows) {
        window.close();
      }
    }
  }

  @Test
  void aCallAllocatesNothing() {
    var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    int calls = 20_000;
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Window window = communicator.window(4096);
      Signals signals = window.signals(1);
      DistributedTensor inbox = window.tensor(DType.F32, 4, 4).transpose(0, 1);
      Tensor local = Tensor.allocate(DType.F32, 4, 4);
      long before = 0;
      for (int i = 1; i <= 2 * calls; i++) {
        if (i == calls) {
          before = threads.getCurrentThreadAllocatedBytes();
        }
        window.put(local, 0, inbox);
        signals.notify(0, 0, i);
        signals.await(0, 0, i);
        if (signals.test(0, 0, i)) {
          window.get(local, 0, inbox);
        }
      }
      assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(calls);
      window.close();
    }
  }

  @Test
  void aSignalIsSeenAndGoesForwardAlone() {
    try (Pair pair = new Pair()) {
      assertThat(pair.signals[0].test(1, 0, 1)).isFalse();
      pair.signals[1].notify(0, 0, 5);
      assertThat(pair.signals[0].test(1, 0, 5)).isTrue();
      assertThat(pair.signals[0].test(1, 0, 6)).isFalse();
      assertThat(pair.signals[0].test(0, 0, 1)).isFalse();
      pair.signals[0].await(1, 0, 5);
      assertThatThrownBy(() -> pair.signals[1].notify(0, 0, 4))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("value 4")
          .hasMessageContaining("at 5");
      assertThat(pair.group.communicator(0).failure()).isEmpty();
    }
  }

  @Test
  void countsGoOnBeyond32Bits() {
    try (Pair pair = new Pair()) {
      long step = 1L << 29;
      for (long value = step; value <= 3L << 32; value += step) {
        pair.signals[1].notify(0, 0, value - 1);
        assertThat(pair.signals[0].test(1, 0, value)).isFalse();
        pair.signals[1].notify(0, 0, value);
        pair.signals[0].await(1, 0, value);
        assertThat(pair.signals[0].test(1, 0, value - step)).isTrue();
        assertThat(pair.signals[0].test(1, 0, value + 1)).isFalse();
      }
      long end = 3L << 32;
      assertThatThrownBy(() -> pair.signals[1].notify(0, 0, end - 1))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("value " + (end - 1) + ": the signal is at " + end + ",");
      assertThatThrownBy(() -> pair.signals[1].notify(0, 0, end + (1L << 30)))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("the signal is at " + end + ",");
      assertThatThrownBy(() -> pair.signals[0].withDeadline(SHORT).await(1, 0, end + 2))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("wait(value " + (end + 2) + " from rank 1)")
          .hasMessageContaining("rank 1 has notified no more than " + end + ":");
    }
  }

  @Test
  void aPassedDeadlineNamesThePeerThatDidNotNotify() {
    try (Pair pair = new Pair()) {
      pair.signals[1].notify(0, 0, 3);
      long start = System.nanoTime();
      assertThatThrownBy(() -> pair.signals[0].withDeadline(SHORT).await(1, 0, 4))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("rank 1 has notified no more than 3")
          .satisfies(
              failure ->
                  assertThat(((DeadlineExceededException) failure).faultyRanks()).containsExactly(1));
      assertThat(System.nanoTime() - start).isGreaterThanOrEqualTo(SHORT.toNanos());
      assertThatThrownBy(() -> pair.signals[1].test(0, 0, 1))
          .isInstanceOf(DeadlineExceededException.class);
    }
  }

  private static boolean isInside(Thread thread, String method) {
    return Arrays.stream(thread.getStackTrace())
        .anyMatch(frame -> frame.getMethodName().equals(method));
  }

  /** What ends an await of rank 0 that has been blocked for a while. */
  private static Throwable ended(Pair pair, Runnable end) throws InterruptedException {
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread waiter =
        new Thread(() -> failure.set(catchThrowable(() -> pair.signals[0].await(1, 0, 1))));
    waiter.start();
    while (!isInside(waiter, "wl_wait")) {
      Thread.sleep(1);
    }
    Thread.sleep(20);
    end.run();
    waiter.join();
    return failure.get();
  }

  @Test
  void abortCloseAndInterruptEndAnAwait() throws Exception {
    try (Pair pair = new Pair()) {
      Throwable failure = ended(pair, () -> pair.group.communicator(1).abort("enough"));
      assertThat(failure).isInstanceOf(AbortedException.class).hasMessageContaining("enough");
    }
    try (Pair pair = new Pair()) {
      Throwable failure = ended(pair, () -> pair.group.communicator(0).close());
      assertThat(failure).isInstanceOf(ClosedException.class);
    }
    try (Pair pair = new Pair()) {
      Throwable failure = ended(pair, () -> pair.group.communicator(1).close());
      assertThat(failure)
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("rank 1 closed the communicator");
      assertThat(((AbortedException) failure).faultyRanks()).containsExactly(1);
    }
    try (Pair pair = new Pair()) {
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> pair.signals[0].await(1, 0, 1))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("interrupted");
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void aWindowClosedInTheMiddleOfAnAwaitStaysUntilItsEnd() throws Exception {
    try (Pair pair = new Pair()) {
      Throwable failure =
          ended(
              pair,
              () -> {
                pair.windows[0].close();
                pair.signals[1].notify(0, 0, 1);
              });
      assertThat(failure).isNull();
      assertThatThrownBy(() -> pair.signals[0].await(1, 0, 1)).isInstanceOf(ClosedException.class);
    }
  }

  @Test
  void aPutToAPeerThatLeftIsToldSo() {
    try (Pair pair = new Pair()) {
      DistributedTensor remote = pair.windows[0].tensor(DType.F32, 4);
      Tensor local = Tensor.allocate(DType.F32, 4);
      pair.windows[1].close();
      pair.windows[0].put(local, 1, remote); // its memory stays with this rank's part
      pair.group.communicator(1).close();
      assertThatThrownBy(() -> pair.windows[0].put(local, 1, remote))
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("put(4 x f32 to rank 1)");
      assertThatThrownBy(() -> pair.windows[0].get(local, 1, remote))
          .isInstanceOf(AbortedException.class);
    }
  }
}
