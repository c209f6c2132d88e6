// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** All-to-all, broadcast and barrier in every launch against slow references, byte for byte. */
class CollectivesTest {
  private static final int[] RANKS = {1, 2, 3, 4, 7, 16};

  /**
   * Elements: around an eager line, around a page, and one that takes many threads where ranks are
   * few.
   */
  private static long[] sizes(int ranks) {
    return new long[] {0, 1, 3, 56, 57, 64, 1000, 4097, ranks <= 4 ? 40_000 : 6_000};
  }

  private static final DType[] DTYPES = {DType.U8, DType.BF16, DType.F32, DType.I64};

  /**
   * Of each size every dtype where ranks are few threads, or where the system property
   * {@code windlass.long} is true; else one, by turns.
   */
  private static List<DType> dtypes(Ranks ranks, int size) {
    return ranks.isWhole() && (ranks.count() <= 3 || Boolean.getBoolean("windlass.long"))
        ? List.of(DTYPES)
        : List.of(DTYPES[(ranks.count() + size) % DTYPES.length]);
  }

  /** Where tensors lie. */
  enum Buffers {
    WINDOW,
    PLAIN;

    /** Tensors come one after the other; windows are all made before the first. */
    Tensor make(Window window, DType dtype, long... shape) {
      return this == WINDOW ? window.tensor(dtype, shape) : Tensor.allocate(dtype, shape);
    }
  }

  static Stream<org.junit.jupiter.params.provider.Arguments> ranksAndBuffers() {
    return Ranks.everywhereWith(RANKS, (Object[]) Buffers.values());
  }

  /** Byte {@code i} of what {@code from} sends to {@code to} in round {@code round}. */
  private static byte stamp(int from, int to, int round, long i) {
    return (byte) (from * 31 + to * 7 + round * 101 + i * 13 + (i >> 8));
  }

  private static void fill(Tensor tensor, int rank, int blocks, int round) {
    byte[] bytes = new byte[(int) tensor.bytes()];
    int block = bytes.length / Math.max(1, blocks);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = stamp(rank, i / block, round, i % block);
    }
    tensor.asByteBuffer().put(bytes);
  }

  private static byte[] bytes(Tensor tensor) {
    byte[] bytes = new byte[(int) tensor.bytes()];
    tensor.asByteBuffer().get(bytes);
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("ranksAndBuffers")
  void allToAllExchangesBlocks(Ranks ranks, Buffers buffers) {
    ranks.run(
        communicator -> {
          int n = communicator.size();
          long[] sizes = sizes(n);
          for (int i = 0; i < sizes.length; i++) {
            long size = sizes[i];
            for (DType dtype : dtypes(ranks, i)) {
              try (Window window = communicator.window(2 * (n * size * dtype.bytes() + 64))) {
                Tensor in = buffers.make(window, dtype, n, size);
                Tensor out = buffers.make(window, dtype, n, size);
                exchange(communicator, in, out);
              }
            }
          }
          if (buffers == Buffers.WINDOW) { // which no copy from one process to another reads
            String way =
                switch (ranks.launch()) {
                  case THREADS -> "shared";
                  case HOSTS -> "stage: ranks live on several hosts";
                  default -> "not yet";
                };
            assertThat(communicator.report().peerMemory()).startsWith(way);
          }
        });
  }

  private static void exchange(Communicator communicator, Tensor in, Tensor out) {
    int ranks = communicator.size();
    int round = 0;
    for (Algorithm algorithm : List.of(Algorithm.AUTO, Algorithm.PUSH, Algorithm.PULL)) {
      for (int repeat = 0; repeat < 2; repeat++) {
        round++;
        fill(in, communicator.rank(), ranks, round);
        communicator.allToAll(in, out, algorithm);
        fill(in, communicator.rank(), ranks, -1); // inputs may be changed at once
        byte[] actual = bytes(out);
        int block = actual.length / ranks;
        for (int i = 0; i < actual.length; i++) {
          byte expected = stamp(i / block, communicator.rank(), round, i % block);
          if (actual[i] != expected) {
            throw new AssertionError(
                String.format(
                    "%s %s: rank %d, byte %d: expected %d, found %d",
                    algorithm, in, communicator.rank(), i, expected, actual[i]));
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("ranksAndBuffers")
  void broadcastCopiesTheRoot(Ranks ranks, Buffers buffers) {
    ranks.run(
        communicator -> {
          int n = communicator.size();
          long[] sizes = sizes(n);
          for (int i = 0; i < sizes.length; i++) {
            long size = sizes[i];
            for (DType dtype : dtypes(ranks, i)) {
              try (Window window = communicator.window(2 * (size * dtype.bytes() + 64))) {
                Tensor in = buffers.make(window, dtype, size);
                Tensor out = buffers.make(window, dtype, size);
                copy(communicator, in, out);
              }
            }
          }
        });
  }

  private static void copy(Communicator communicator, Tensor in, Tensor out) {
    for (int root = 0; root < communicator.size(); root++) {
      boolean isRoot = communicator.rank() == root;
      fill(in, communicator.rank(), 1, root);
      communicator.broadcast(isRoot ? in : null, out, root);
      requireStamp(communicator, out, root, root);

      fill(out, communicator.rank(), 1, root + 1);
      communicator.broadcast(out, root); // in place
      requireStamp(communicator, out, root, root + 1);
    }
  }

  private static void requireStamp(Communicator communicator, Tensor out, int root, int round) {
    byte[] actual = bytes(out);
    for (int i = 0; i < actual.length; i++) {
      if (actual[i] != stamp(root, 0, round, i)) {
        throw new AssertionError(
            String.format("%s from %d: rank %d, byte %d", out, root, communicator.rank(), i));
      }
    }
  }

  /** Each tells all before it enters, and finds that all have told it once it is out. */
  @OnRanks({1, 2, 3, 4, 7, 8, 16})
  void nobodyLeavesABarrierBeforeAllCame(Ranks ranks) {
    ranks.run(
        communicator -> {
          int n = communicator.size();
          Random random = new Random(communicator.rank());
          try (Window window = communicator.window(Signals.bytes(1, n))) {
            Signals came = window.signals(1);
            for (int round = 1; round <= 200; round++) {
              if (random.nextInt(20) == 0) {
                Thread.yield();
              }
              for (int peer = 0; peer < n; peer++) {
                came.notify(peer, 0, round);
              }
              communicator.barrier();
              for (int peer = 0; peer < n; peer++) {
                assertThat(came.test(peer, 0, round)).isTrue();
                assertThat(came.test(peer, 0, round + 2)).isFalse();
              }
            }
          }
        });
  }

  static Stream<org.junit.jupiter.params.provider.Arguments> firstSequences() {
    return Ranks.with(new int[] {3, 4}, 0x7fffff00, 0xffffff00);
  }

  @ParameterizedTest
  @MethodSource("firstSequences")
  void sequencesWrap(Ranks ranks, int firstSequence) {
    ranks.run(
        () -> CommunicatorOptions.defaults().withFirstSequence(firstSequence),
        communicator -> {
          int n = communicator.size();
          Tensor in = Tensor.allocate(DType.I32, n);
          Tensor out = Tensor.allocate(DType.I32, n);
          for (int round = 0; round < 600; round++) {
            in.fill(communicator.rank() + 10L * round);
            communicator.allToAll(in, out);
            for (int from = 0; from < n; from++) {
              assertThat(out.getLong(from)).isEqualTo(from + 10L * round);
            }
          }
        });
  }

  @OnRanks(4)
  void blocksNeedNotBeTheFirstDimension(Ranks ranks) {
    ranks.run(
        communicator -> {
          Tensor in = Tensor.allocate(DType.F64, 2, 2, 3);
          Tensor out = Tensor.allocate(DType.F64, 12);
          in.fill(communicator.rank());
          communicator.allToAll(in, out);
          for (int i = 0; i < 12; i++) {
            assertThat(out.getDouble(i)).isEqualTo(i / 3);
          }
        });
  }

  /** Ranks 4 and 5 are in neither half. */
  @OnRanks({5, 6})
  void splitOrdersByKeyThenRank(Ranks ranks) {
    ranks.run(
        communicator -> {
          int rank = communicator.rank();
          int color = rank >= 4 ? -1 : rank % 2;
          try (Communicator half = communicator.split(color, -rank)) {
            if (rank >= 4) {
              assertThat(half).isNull();
              return;
            }
            assertThat(half.size()).isEqualTo(2);
            assertThat(half.rank()).isEqualTo(rank < 2 ? 1 : 0);
            Tensor value = Tensor.allocate(DType.I32);
            value.fill(rank);
            half.broadcast(value, 0);
            assertThat(value.getLong()).isEqualTo(2 + rank % 2);
          }
        });
  }

  @Test
  void theGroupRunsAgainAndReturnsResultsInOrder() {
    try (LocalGroup group = LocalGroup.of(3)) {
      for (int round = 0; round < 3; round++) {
        List<String> names =
            group.call(
                communicator -> {
                  communicator.barrier();
                  return Thread.currentThread().getName();
                });
        assertThat(names).containsExactly("windlass-rank-0", "windlass-rank-1", "windlass-rank-2");
      }
    }
  }
}
