// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.testing.ScalarReference;

/**
 * allToAllv, allGatherv and reduceScatterv against slow references, bit for bit: launches x ranks x
 * counts x dtypes x offsets x plain or window x in place or not, ranks and dtypes paired as {@link
 * Ranks#with} says; over and over; what they refuse.
 */
@Timeout(120)
class PartCollectivesTest {
  private static final int[] RANKS = {1, 2, 3, 4, 7, 8};
  private static final DType[] DTYPES = {DType.U8, DType.BF16, DType.F32, DType.I64};
  private static final long SEED =
      Long.getLong("windlass.seed", System.nanoTime()); // -Dwindlass.seed repeats it

  /** What shape counts have. */
  private enum Shape {
    NOTHING,
    SOME,
    IDLE_RANK,
    SKEWED;

    /** The same on every rank that draws from an equal generator: [from][to]. */
    long[][] draw(int ranks, SplittableRandom random) {
      long[][] counts = new long[ranks][ranks];
      int chosen = random.nextInt(ranks);
      for (int from = 0; from < ranks; from++) {
        for (int to = 0; to < ranks; to++) {
          boolean idle = from == chosen || to == chosen;
          counts[from][to] =
              switch (this) {
                case NOTHING -> 0;
                case SOME -> random.nextInt(3) == 0 ? 0 : random.nextInt(400);
                case IDLE_RANK -> idle ? 0 : random.nextInt(60);
                case SKEWED -> from == chosen && to == ranks - 1 ? 70_001 : 1;
              };
        }
      }
      return counts;
    }
  }

  static Stream<org.junit.jupiter.params.provider.Arguments> cases() {
    System.out.println("seed " + SEED);
    return Ranks.everywhereWith(RANKS, (Object[]) DTYPES);
  }

  private static long sum(long[] counts) {
    return Arrays.stream(counts).sum();
  }

  private static long[] column(long[][] counts, int to) {
    return Arrays.stream(counts).mapToLong(row -> row[to]).toArray();
  }

  private static long[] sideBySide(long[] counts) {
    long[] offsets = new long[counts.length];
    for (int i = 1; i < counts.length; i++) {
      offsets[i] = offsets[i - 1] + counts[i - 1];
    }
    return offsets;
  }

  /** From the last rank to the first, with a gap before each. */
  private static long[] backwards(long[] counts) {
    long[] offsets = new long[counts.length];
    long end = 0;
    for (int i = counts.length - 1; i >= 0; i--) {
      offsets[i] = end + 3;
      end = offsets[i] + counts[i];
    }
    return offsets;
  }

  private static byte stamp(int round, int from, int to, long i) {
    return (byte) (from * 31 + to * 7 + round * 101 + i * 13 + (i >> 8));
  }

  /** Elements that hold parts of {@code counts} with gaps. */
  private static long roomFor(long[] counts) {
    return sum(counts) + 3L * counts.length + 5;
  }

  private static Tensor make(Window window, DType dtype, long numel) {
    Tensor tensor = window == null ? Tensor.allocate(dtype, numel) : window.tensor(dtype, numel);
    ByteBuffer bytes = tensor.asByteBuffer();
    while (bytes.hasRemaining()) {
      bytes.put((byte) 0x5c);
    }
    return tensor;
  }

  private static byte[] bytes(Tensor tensor) {
    byte[] bytes = new byte[(int) tensor.bytes()];
    tensor.asByteBuffer().get(bytes);
    return bytes;
  }

  private static void write(
      byte[] to, long offset, long count, int width, int round, int from, int peer) {
    for (long i = 0; i < count * width; i++) {
      to[(int) (offset * width + i)] = stamp(round, from, peer, i);
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void allToAllvMovesJustTheCountedElements(Ranks ranks, DType dtype) {
    long seed = SEED;
    ranks.run(
        comm -> {
          SplittableRandom random = new SplittableRandom(seed);
          int round = 0;
          for (Shape shape : Shape.values()) {
            for (boolean inWindow : new boolean[] {false, true}) {
              for (boolean gaps : new boolean[] {false, true}) {
                long[][] counts = shape.draw(comm.size(), random);
                exchange(comm, dtype, counts, inWindow, gaps, ++round);
              }
            }
          }
        });
  }

  private static void exchange(
      Communicator comm, DType dtype, long[][] counts, boolean inWindow, boolean gaps, int round) {
    int ranks = comm.size();
    int rank = comm.rank();
    int width = dtype.bytes();
    long[] sends = counts[rank].clone();
    long[] receives = column(counts, rank);
    long[] sendAt = gaps ? backwards(sends) : sideBySide(sends);
    long[] receiveAt = gaps ? backwards(receives) : sideBySide(receives);
    long most = Arrays.stream(counts).mapToLong(PartCollectivesTest::sum).sum() + 64;
    try (Window window = inWindow ? comm.window(3 * most * width + 256) : null) {
      Tensor in = make(window, dtype, roomFor(sends));
      Tensor out = make(window, dtype, roomFor(receives));
      Tensor packed = make(window, dtype, sum(receives));
      byte[] sent = bytes(in);
      byte[] expected = bytes(out);
      byte[] expectedPacked = bytes(packed);
      long[] packedAt = sideBySide(receives);
      for (int peer = 0; peer < ranks; peer++) {
        write(sent, sendAt[peer], sends[peer], width, round, rank, peer);
        write(expected, receiveAt[peer], receives[peer], width, round, peer, rank);
        write(expectedPacked, packedAt[peer], receives[peer], width, round, peer, rank);
      }
      in.asByteBuffer().put(sent);
      if (gaps) {
        comm.allToAllv(in, sends, sendAt, out, receives, receiveAt);
      } else {
        comm.allToAllv(in, sends, out, receives);
      }
      assertThat(bytes(out)).isEqualTo(expected);
      if (!gaps) {
        assertThat(comm.allToAllv(in, sends, packed)).isEqualTo(receives);
        assertThat(bytes(packed)).isEqualTo(expectedPacked);
      }
      Arrays.fill(sends, -1);
      comm.barrier();
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void allGathervPutsEveryInputWhereItsCountSays(Ranks ranks, DType dtype) {
    int width = dtype.bytes();
    long seed = SEED;
    ranks.run(
        comm -> {
          SplittableRandom random = new SplittableRandom(seed);
          int rank = comm.rank();
          int round = 0;
          for (Shape shape : Shape.values()) {
            long[] counts = shape.draw(comm.size(), random)[0];
            long[] at = sideBySide(counts);
            for (boolean inPlace : new boolean[] {false, true}) {
              round++;
              try (Window window = comm.window(sum(counts) * width)) {
                Tensor out = make(inPlace ? window : null, dtype, sum(counts));
                Tensor own = out.narrow(0, at[rank], counts[rank]);
                Tensor in = inPlace ? own : make(null, dtype, counts[rank]);
                byte[] sent = new byte[(int) in.bytes()];
                byte[] expected = new byte[(int) out.bytes()];
                write(sent, 0, counts[rank], width, round, rank, 0);
                for (int from = 0; from < counts.length; from++) {
                  write(expected, at[from], counts[from], width, round, from, 0);
                }
                in.asByteBuffer().put(sent);
                comm.allGatherv(in, out, counts);
                assertThat(bytes(out)).isEqualTo(expected);
                comm.barrier();
              }
            }
          }
        });
  }

  private static long bits(ByteBuffer bytes, int width, int index) {
    return switch (width) {
      case 1 -> bytes.get(index) & 0xffL;
      case 2 -> bytes.getShort(2 * index) & 0xffffL;
      case 4 -> bytes.getInt(4 * index) & 0xffffffffL;
      default -> bytes.getLong(8 * index);
    };
  }

  private static void put(ByteBuffer bytes, int width, int index, long bits) {
    switch (width) {
      case 1 -> bytes.put(index, (byte) bits);
      case 2 -> bytes.putShort(2 * index, (short) bits);
      case 4 -> bytes.putInt(4 * index, (int) bits);
      default -> bytes.putLong(8 * index, bits);
    }
  }

  /** Magnitudes differ, so that another order of a sum gives other bits. */
  private static long input(DType dtype, int rank, int index) {
    SplittableRandom random = new SplittableRandom(index * 31L + rank);
    if (!dtype.isFloating()) {
      return dtype.bytes() == 8 ? random.nextLong() : random.nextLong() & 0xff;
    }
    double value = (random.nextDouble() - 0.5) * Math.scalb(1.0, random.nextInt(12) - 6);
    return ScalarReference.encode(dtype, value);
  }

  @ParameterizedTest
  @MethodSource("cases")
  void reduceScattervKeepsTheCanonicalOrder(Ranks ranks, DType dtype) {
    int width = dtype.bytes();
    long seed = SEED;
    ranks.run(
        comm -> {
          SplittableRandom random = new SplittableRandom(seed);
          int rank = comm.rank();
          for (Shape shape : Shape.values()) {
            for (ReduceOp op : ReduceOp.values()) {
              long[] counts = shape.draw(comm.size(), random)[0];
              long[] at = sideBySide(counts);
              for (boolean inPlace : new boolean[] {false, true}) {
                if (!dtype.canReduce(op)) {
                  continue;
                }
                Tensor in = Tensor.allocate(dtype, sum(counts));
                ByteBuffer values = in.asByteBuffer();
                for (int i = 0; i < in.numel(); i++) {
                  put(values, width, i, input(dtype, rank, i));
                }
                Tensor own = in.narrow(0, at[rank], counts[rank]);
                Tensor out = inPlace ? own : Tensor.allocate(dtype, counts[rank]);
                comm.reduceScatterv(in, out, counts, op);
                requireReduced(out, op, (int) at[rank], comm.size());
                comm.barrier();
              }
            }
          }
        });
  }

  private static void requireReduced(Tensor out, ReduceOp op, int first, int ranks) {
    int width = out.dtype().bytes();
    ByteBuffer found = out.asByteBuffer();
    long[] terms = new long[ranks];
    long mask = width == 8 ? -1 : (1L << 8 * width) - 1;
    for (int i = 0; i < out.numel(); i++) {
      for (int from = 0; from < ranks; from++) {
        terms[from] = input(out.dtype(), from, first + i);
      }
      long expected = ScalarReference.fold(out.dtype(), op, terms) & mask;
      if (bits(found, width, i) != expected) {
        throw new AssertionError(op + " of " + out + ": element " + (first + i));
      }
    }
  }

  @OnRanks({2, 4, 5})
  void oneWindowKeepsItsBitsOverAndOver(Ranks ranks) {
    long seed = SEED;
    int rounds = ranks.rounds(3000);
    ranks.run(
        comm -> {
          int n = comm.size();
          SplittableRandom common = new SplittableRandom(seed);
          SplittableRandom own = new SplittableRandom(seed + comm.rank());
          int rank = comm.rank();
          try (Window window = comm.window(2L * 8 * 500 * n + 64)) {
            Tensor in = window.tensor(DType.I64, 500L * n);
            Tensor out = window.tensor(DType.I64, 500L * n);
            long[] values = new long[500 * n];
            for (int round = 0; round < rounds; round++) {
              Shape shape = round % 2 == 0 ? Shape.SOME : Shape.IDLE_RANK;
              long[][] counts = shape.draw(n, common);
              long[] sends = counts[rank];
              long[] receives = column(counts, rank);
              int end = 0;
              for (int to = 0; to < n; to++) {
                int next = end + (int) sends[to];
                Arrays.fill(values, end, next, value(round, rank, to));
                end = next;
              }
              in.copyFrom(values);
              if (own.nextInt(64) == 0) {
                Thread.yield();
              }
              if (common.nextBoolean()) {
                comm.allToAllv(in, sends, out, receives);
              } else {
                assertThat(comm.allToAllv(in, sends, out)).isEqualTo(receives);
              }
              in.fill(-1);
              Arrays.fill(sends, -1);
              out.copyTo(values);
              int at = 0;
              for (int from = 0; from < n; from++) {
                for (int i = 0; i < receives[from]; i++, at++) {
                  if (values[at] != value(round, from, rank)) {
                    throw new AssertionError("round " + round + ", element " + at);
                  }
                }
              }
            }
          }
        });
  }

  private static long value(int round, int from, int to) {
    return 1_000_000L * round + 1000L * from + to;
  }

  @OnRanks({3, 4})
  void whatOneSendsAndTheOtherExpectsMustAgree(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor in = Tensor.allocate(DType.F32, 12);
          Tensor out = Tensor.allocate(DType.F32, 12);
          long[] sends = new long[comm.size()];
          Arrays.fill(sends, 2);
          long[] receives = sends.clone();
          receives[2] = comm.rank() == 0 ? 4 : 2;
          MismatchException failure =
              catchThrowableOfType(
                  MismatchException.class, () -> comm.allToAllv(in, sends, out, receives));
          assertThat(failure)
              .hasMessageContaining("rank 2 sends 2 elements to rank 0, which expects 4");
          assertThat(failure.faultyRanks()).containsExactly(0, 2);
        });
  }

  @OnRanks(2)
  void countsOfAGatherMustBeAlike(Ranks ranks) {
    ranks.run(
        comm -> {
          long[] counts = {2000, 2000};
          counts[1 - comm.rank()] = 3000;
          Tensor in = Tensor.allocate(DType.F32, 2000);
          Tensor out = Tensor.allocate(DType.F32, 5000);
          assertThatThrownBy(() -> comm.allGatherv(in, out, counts))
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("counts[0] is ");
        });
  }

  @OnRanks({3, 4})
  void tooLittleRoomIsSaidOnEveryRankAndNothingMoves(Ranks ranks) {
    ranks.run(
        comm -> {
          int all = 10 * comm.size();
          Tensor in = Tensor.allocate(DType.I32, all).fill(comm.rank() + 1);
          Tensor out = Tensor.allocate(DType.I32, comm.rank() == 1 ? all - 1 : all);
          long[] sends = new long[comm.size()];
          Arrays.fill(sends, 10);
          assertThatThrownBy(() -> comm.allToAllv(in, sends, out))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining(
                  "out of rank 1 has room for " + (all - 1) + " elements, and " + all + " come");
          int[] values = new int[(int) out.numel()];
          out.copyTo(values);
          assertThat(values).containsOnly(0);
          Tensor larger = Tensor.allocate(DType.I32, all);
          assertThat(comm.allToAllv(in, sends, larger)).containsOnly(10);
          assertThat(larger.getLong(all - 1)).isEqualTo(comm.size());
        });
  }

  @Test
  void runFromAForkJoinThread() throws Exception {
    ForkJoinPool pool = new ForkJoinPool(2);
    try (LocalGroup group = LocalGroup.of(2)) {
      List<Future<long[]>> results = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        Communicator comm = group.communicator(rank);
        Tensor in = Tensor.allocate(DType.F32, 4);
        Tensor out = Tensor.allocate(DType.F32, 4);
        long[] counts = {2, 2};
        results.add(
            pool.submit(
                () -> {
                  comm.allToAllv(in, counts, out, counts);
                  comm.allGatherv(in.narrow(0, 0, 2), out, counts);
                  comm.reduceScatterv(in, out.narrow(0, 0, 2), counts, ReduceOp.SUM);
                  return comm.allToAllv(in, counts, out);
                }));
      }
      for (Future<long[]> result : results) {
        assertThat(result.get()).containsExactly(2, 2);
      }
    } finally {
      pool.shutdown();
    }
  }

  @Test
  void aCallAllocatesNothingButTheCountsItReturns() {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int calls = 20_000;
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator comm = group.communicator(0);
      Tensor in = Tensor.allocate(DType.F32, 8);
      Tensor out = Tensor.allocate(DType.F32, 8);
      long[] eight = {8};
      long[] zero = {0};
      long allocated = 0;
      for (int attempt = 0; attempt < 2; attempt++) { // the first warms up
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < calls; i++) {
          comm.allToAllv(in, eight, out, eight);
          comm.allToAllv(in, eight, zero, out, eight, zero);
          comm.allGatherv(in, out, eight);
          comm.reduceScatterv(in, out, eight, ReduceOp.SUM);
        }
        allocated = threads.getCurrentThreadAllocatedBytes() - before;
      }
      assertThat(allocated).isLessThan(calls);
    }
  }
}
