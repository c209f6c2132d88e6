// SPDX-License-Identifier: Apache-2.0
package org.windlass.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.MemoryPool;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;

/**
 * Memory pools of ranks that are threads: what tensors hold while others come and go, when memory
 * goes, and what is refused. Ranks that are processes are in {@link OrdinaryMemoryTest}.
 */
@Timeout(120)
class MemoryPoolTest {
  private static final Duration SOON = Duration.ofSeconds(30);

  /** Tensors of one rank, each filled with a number of its own. */
  private static final class Held {
    private final MemoryPool pool;
    private final Random random;
    private final List<Tensor> tensors = new ArrayList<>();
    private final List<Long> numbers = new ArrayList<>();
    private long used;

    Held(MemoryPool pool, Random random) {
      this.pool = pool;
      this.random = random;
    }

    private static long wholeLines(Tensor tensor) {
      return Math.max(64, (tensor.bytes() + 63) / 64 * 64);
    }

    void allocate(DType dtype, long count) {
      Tensor tensor = pool.allocate(dtype, count);
      assertThat(tensor.address() % 64).isZero();
      for (long i = 0; i < tensor.numel(); i++) {
        assertThat(tensor.getLong(i)).isZero();
      }
      long number = 1 + random.nextInt(100);
      tensor.fill(number);
      tensors.add(tensor);
      numbers.add(number);
      used += wholeLines(tensor);
      assertThat(pool.used()).isEqualTo(used);
    }

    void close(int which) {
      Tensor tensor = tensors.remove(which);
      long number = numbers.remove(which);
      for (long i = 0; i < tensor.numel(); i++) {
        assertThat(tensor.getLong(i)).isEqualTo(number);
      }
      tensor.close();
      tensor.close();
      used -= wholeLines(tensor);
      assertThat(pool.used()).isEqualTo(used);
      assertThatThrownBy(() -> tensor.fill(0)).isInstanceOf(ClosedException.class);
    }
  }

  @Test
  void whatItIsIsTold() {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            try (MemoryPool pool = comm.memoryPool(4096);
                Window window = comm.window(64)) {
              assertThat(pool).hasToString("memory pool of 4096 bytes, rank 0 of 1");
              assertThat(window).hasToString("window of 64 bytes, rank 0 of 1");
            }
          });
    }
  }

  @RandomSeeds(10)
  void tensorsKeepWhatTheyHoldWhileOthersComeAndGo(long seed) {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            Random random = new Random(seed + comm.rank());
            try (MemoryPool pool = comm.memoryPool(1 << 20)) {
              Held held = new Held(pool, random);
              Tensor sum = pool.allocate(DType.I32, 700);
              held.used = pool.used();
              for (int step = 0; step < 40; step++) {
                int kind = random.nextInt(3);
                if (kind < 2 && held.tensors.size() < 20) {
                  held.allocate(
                      List.of(DType.U8, DType.I16, DType.I32).get(random.nextInt(3)),
                      random.nextInt(1800));
                } else if (!held.tensors.isEmpty()) {
                  held.close(random.nextInt(held.tensors.size()));
                }
                sum.fill(step + comm.rank());
                comm.allReduce(sum, ReduceOp.SUM);
                assertThat(sum.getLong(699)).isEqualTo(2 * step + 1);
              }
              while (!held.tensors.isEmpty()) {
                held.close(held.tensors.size() - 1);
              }
              sum.close();
              assertThat(pool.used()).isZero();
              comm.barrier();
            }
          });
    }
  }

  @Test
  void aFullPoolSaysWhatItHas() {
    try (LocalGroup group = LocalGroup.of(1);
        MemoryPool pool = group.communicator(0).memoryPool(100_000)) {
      assertThat(pool.bytes()).isEqualTo(100_000);
      assertThat(pool.communicator()).isSameAs(group.communicator(0));
      Tensor first = pool.allocate(DType.U8, 40_000);
      Tensor second = pool.allocate(DType.U8, 20_000);
      first.close();
      // 25 pages hold 102,400 bytes.
      assertThatThrownBy(() -> pool.allocate(DType.F32, 3, 5_000))
          .isInstanceOf(ResourceException.class)
          .hasMessageContaining("cannot take 60000 bytes of a memory pool")
          .hasMessageContaining("of its 102400 on this rank 82368 are free")
          .hasMessageContaining("42368 of them side by side");
      second.close();
      pool.allocate(DType.F32, 3, 5_000).close();
      assertThatThrownBy(() -> pool.allocate(DType.F32, -1))
          .isInstanceOf(InvalidArgumentException.class);
      assertThat(pool.allocate(DType.F32, 0).numel()).isZero();
    }
  }

  @Test
  void anEmptyOrHugePoolIsRefusedOnAllRanks() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            assertThatThrownBy(() -> comm.memoryPool(0))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("bytes is 0; it must be 1 or more");
            assertThatThrownBy(() -> comm.memoryPool(-1, SOON))
                .isInstanceOf(InvalidArgumentException.class);
            assertThatThrownBy(() -> comm.memoryPool(Long.MAX_VALUE))
                .isInstanceOf(ResourceException.class);
            comm.memoryPool(1, SOON).close();
          });
    }
  }

  @Test
  void tensorsOutliveTheCloseOfTheirPoolAndOfItsCommunicator() {
    Tensor tensor;
    try (LocalGroup group = LocalGroup.of(1)) {
      MemoryPool pool = group.communicator(0).memoryPool(1 << 20);
      tensor = pool.allocate(DType.F32, 1000).fill(3);
      pool.close();
      pool.close();
      assertThatThrownBy(() -> pool.allocate(DType.F32, 1))
          .isInstanceOf(ClosedException.class)
          .hasMessage("allocate: the memory pool of 1048576 bytes was closed");
      assertThatThrownBy(pool::used).isInstanceOf(ClosedException.class);
      group.communicator(0).allReduce(tensor, ReduceOp.SUM);
    }
    assertThat(tensor.getDouble(999)).isEqualTo(3);
    tensor.close();
    assertThatThrownBy(() -> tensor.getDouble(0)).isInstanceOf(ClosedException.class);
  }

  @Test
  void aDroppedTensorIsGivenBack() throws Exception {
    try (LocalGroup group = LocalGroup.of(1);
        MemoryPool pool = group.communicator(0).memoryPool(1 << 20)) {
      for (int i = 0; i < 8; i++) {
        pool.allocate(DType.U8, 100_000).narrow(0, 1, 5);
      }
      await(() -> pool.used() == 0);
    }
  }

  private static void await(BooleanSupplier done) throws InterruptedException {
    long end = System.nanoTime() + SOON.toNanos();
    while (!done.getAsBoolean() && System.nanoTime() < end) {
      System.gc();
      Thread.sleep(10);
    }
    assertThat(done.getAsBoolean()).isTrue();
  }

  @Test
  void aFailedCallKeepsWhatItNamesUntilNobodyCanTouchIt() throws Exception {
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(100));
    try (LocalGroup group = LocalGroup.of(2, options)) {
      MemoryPool[] pools = new MemoryPool[2];
      group.run(comm -> pools[comm.rank()] = comm.memoryPool(1 << 20, SOON));
      Tensor named = pools[0].allocate(DType.F32, 1000).fill(1);
      assertThatThrownBy(() -> group.communicator(0).allReduce(named, ReduceOp.SUM))
          .isInstanceOf(DeadlineExceededException.class);
      // Nothing is taken where a rank that was thought lost may still write.
      assertThatThrownBy(() -> pools[1].allocate(DType.F32, 1))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageStartingWith("the communicator of the memory pool is dead: ");
      named.close();
      await(() -> pools[0].used() == 0);
      pools[0].close();
      pools[1].close();
      try (Communicator shrunk = group.communicator(0).shrink(Duration.ofMillis(200));
          MemoryPool pool = shrunk.memoryPool(1 << 20)) {
        Tensor again = pool.allocate(DType.F32, 1000).fill(2);
        shrunk.allReduce(again, ReduceOp.SUM);
        assertThat(again.getDouble(999)).isEqualTo(2);
        again.close();
      }
    }
  }

  @Test
  void poolsInARowLeaveNothingBehind() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(MemoryPoolTest::onePool);
      Resources before = Resources.now();
      for (int i = 0; i < 300; i++) {
        group.run(MemoryPoolTest::onePool);
      }
      before.requireNoMoreNow();
    }
  }

  private static void onePool(Communicator comm) {
    try (MemoryPool pool = comm.memoryPool(1L << 40)) {
      Tensor tensor = pool.allocate(DType.U8, 1 << 20).fill(1);
      comm.barrier();
      tensor.close();
    }
  }
}
