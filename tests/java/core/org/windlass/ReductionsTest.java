// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ForkJoinPool;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.Ranks;
import org.windlass.testing.ScalarReference;

/**
 * All-gather, reduce-scatter, all-reduce, scatter, gather and reduce against slow references, bit
 * for bit: launches x ranks x sizes x dtypes x ops x algorithms x plain or window x in place or
 * not. Ranks and dtypes are paired as {@link Ranks#with} says. Unless the system property {@code
 * windlass.long} is true, buffers and places take turns over the others, and processes take every
 * other size.
 */
class ReductionsTest {
  private static final int[] RANKS = {1, 2, 3, 4, 7, 8};
  private static final boolean LONG = Boolean.getBoolean("windlass.long");

  /** Elements of a part: none, one, odd, around what rides with a signal, several pieces. */
  private static final long[] SIZES = {0, 1, 5, 257, 1025, 4099};

  private static final DType[] DTYPES = {
    DType.F32, DType.F64, DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2, DType.I32, DType.U8,
    DType.I64, DType.BOOL
  };

  static Stream<org.junit.jupiter.params.provider.Arguments> cases() {
    return Ranks.everywhereWith(RANKS, (Object[]) DTYPES);
  }

  /** Inputs of all ranks, and their reductions by the slow reference. */
  private static final class Reference {
    /** That of the last test, which the ranks of a process have in common. */
    private static Reference last;

    final DType dtype;
    private final long[][] inputs;
    private final Map<ReduceOp, long[]> reductions = new EnumMap<>(ReduceOp.class);

    static synchronized Reference of(DType dtype, int ranks) {
      if (last == null || last.dtype != dtype || last.inputs.length != ranks) {
        last = new Reference(dtype, ranks);
      }
      return last;
    }

    private Reference(DType dtype, int ranks) {
      this.dtype = dtype;
      int most = (int) (ranks * SIZES[SIZES.length - 1]);
      inputs = new long[ranks][most];
      for (int rank = 0; rank < ranks; rank++) {
        SplittableRandom random = new SplittableRandom(rank + 1);
        for (int i = 0; i < most; i++) {
          inputs[rank][i] = next(random) & mask(dtype);
        }
      }
      for (ReduceOp op : ReduceOp.values()) {
        if (dtype.canReduce(op)) {
          reductions.put(op, reduce(op));
        }
      }
    }

    private long next(SplittableRandom random) {
      if (dtype == DType.BOOL) {
        return random.nextInt(2);
      }
      if (!dtype.isFloating()) {
        return random.nextLong();
      }
      // Magnitudes differ, so that another order of the sum gives other bits; now and then a
      // special value.
      double value =
          switch (random.nextInt(40)) {
            case 0 -> Double.NaN;
            case 1 -> Double.POSITIVE_INFINITY;
            case 2 -> -0.0;
            case 3 -> 0.0;
            default -> (random.nextDouble() - 0.5) * Math.scalb(1.0, random.nextInt(12) - 6);
          };
      return ScalarReference.encode(dtype, value);
    }

    /** The canonical order: a left fold over ascending ranks, rounded once. */
    private long[] reduce(ReduceOp op) {
      long[] reduced = new long[inputs[0].length];
      long[] terms = new long[inputs.length];
      for (int i = 0; i < reduced.length; i++) {
        for (int rank = 0; rank < terms.length; rank++) {
          terms[rank] = inputs[rank][i];
        }
        reduced[i] = ScalarReference.fold(dtype, op, terms) & mask(dtype);
      }
      return reduced;
    }

    long input(int rank, long index) {
      return inputs[rank][(int) index];
    }

    long reduced(ReduceOp op, long index) {
      return reductions.get(op)[(int) index];
    }

    void fill(Tensor tensor, int rank) {
      ByteBuffer bytes = tensor.asByteBuffer();
      for (int i = 0; i < tensor.numel(); i++) {
        long bits = inputs[rank][i];
        switch (dtype.bytes()) {
          case 1 -> bytes.put(i, (byte) bits);
          case 2 -> bytes.putShort(2 * i, (short) bits);
          case 4 -> bytes.putInt(4 * i, (int) bits);
          default -> bytes.putLong(8 * i, bits);
        }
      }
    }
  }

  private static long mask(DType dtype) {
    return dtype.bytes() == 8 ? -1L : (1L << 8 * dtype.bytes()) - 1;
  }

  private static long bits(ByteBuffer bytes, int size, int index) {
    return switch (size) {
      case 1 -> bytes.get(index) & 0xffL;
      case 2 -> bytes.getShort(2 * index) & 0xffffL;
      case 4 -> bytes.getInt(4 * index) & 0xffffffffL;
      default -> bytes.getLong(8 * index);
    };
  }

  /** What element {@code index} is where. */
  @FunctionalInterface
  private interface Expected {
    long bits(long index);
  }

  private static void compare(String what, Tensor got, Expected expected) {
    ByteBuffer bytes = got.asByteBuffer();
    for (int i = 0; i < got.numel(); i++) {
      long seen = bits(bytes, got.dtype().bytes(), i);
      if (seen != expected.bits(i)) {
        assertThat(Long.toHexString(seen))
            .as("%s, element %d", what, i)
            .isEqualTo(Long.toHexString(expected.bits(i)));
      }
    }
  }

  private static boolean exact(DType dtype, ReduceOp op) {
    return !dtype.isFloating() || op == ReduceOp.MAX || op == ReduceOp.MIN;
  }

  @ParameterizedTest
  @MethodSource("cases")
  void matchTheReference(Ranks ranks, DType dtype) {
    ranks.run(
        comm -> {
          int n = comm.size();
          Reference reference = Reference.of(dtype, n);
          for (int s = 0; s < SIZES.length; s++) {
            if (!ranks.isWhole() && (s + dtype.ordinal()) % 2 == 0) {
              continue;
            }
            long size = SIZES[s];
            int turn = s + dtype.ordinal() + n;
            long bytes = 2 * (n + 3) * (size * dtype.bytes() + 64);
            try (Window window = comm.window(bytes)) {
              for (CollectivesTest.Buffers buffers : CollectivesTest.Buffers.values()) {
                for (boolean inPlace : new boolean[] {false, true}) {
                  if (!LONG && turn++ % 4 != 0) {
                    continue;
                  }
                  Tensor whole = buffers.make(window, dtype, n, size);
                  Tensor part =
                      inPlace ? whole.select(0, comm.rank()) : buffers.make(window, dtype, size);
                  Tensor in = buffers.make(window, dtype, size);
                  Tensor out = inPlace ? in : buffers.make(window, dtype, size);
                  gathers(comm, reference, whole, part);
                  for (ReduceOp op : ReduceOp.values()) {
                    if (dtype.canReduce(op)) {
                      reduceScatter(comm, reference, op, whole, part);
                      reduces(comm, reference, op, in, out);
                    }
                  }
                  comm.barrier();
                }
              }
            }
          }
        });
  }

  private static void gathers(
      Communicator comm, Reference reference, Tensor whole, Tensor part) {
    long size = part.numel();
    int root = comm.size() / 2;
    reference.fill(part, comm.rank());
    comm.allGather(part, whole);
    compare("all-gather", whole, i -> reference.input((int) (i / size), i % size));
    reference.fill(part, comm.rank());
    comm.gather(part, comm.rank() == root ? whole : null, root);
    if (comm.rank() == root) {
      compare("gather", whole, i -> reference.input((int) (i / size), i % size));
    }
    reference.fill(whole, comm.rank());
    comm.scatter(comm.rank() == root ? whole : null, part, root);
    compare("scatter", part, i -> reference.input(root, comm.rank() * size + i));
  }

  private static void reduceScatter(
      Communicator comm, Reference reference, ReduceOp op, Tensor whole, Tensor part) {
    long size = part.numel();
    reference.fill(whole, comm.rank());
    comm.reduceScatter(whole, part, op);
    compare("reduce-scatter " + op, part, i -> reference.reduced(op, comm.rank() * size + i));
  }

  private static void reduces(
      Communicator comm, Reference reference, ReduceOp op, Tensor in, Tensor out) {
    boolean inPlace = in == out;
    DType dtype = in.dtype();
    reference.fill(in, comm.rank());
    comm.reduce(in, comm.rank() == 0 ? out : null, op, 0);
    if (comm.rank() == 0) {
      compare("reduce " + op, out, i -> reference.reduced(op, i));
    }
    for (Algorithm algorithm :
        List.of(
            Algorithm.AUTO,
            Algorithm.ONE_PHASE,
            Algorithm.TWO_PHASE,
            Algorithm.RING,
            Algorithm.BIDIRECTIONAL_RING)) {
      boolean ring = algorithm == Algorithm.RING || algorithm == Algorithm.BIDIRECTIONAL_RING;
      if (algorithm == Algorithm.ONE_PHASE && inPlace || ring && !exact(dtype, op)) {
        continue; // one-phase in place: small ones alone; rings of floats: the native tests
      }
      reference.fill(in, comm.rank());
      comm.allReduce(in, out, op, algorithm);
      compare("all-reduce " + op + " " + algorithm, out, i -> reference.reduced(op, i));
    }
  }

  @Test
  void runFromAForkJoinThreadAndWithADeadline() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Tensor[] tensors = {Tensor.allocate(DType.F32, 4), Tensor.allocate(DType.F32, 4)};
      ForkJoinPool pool = new ForkJoinPool(2);
      try {
        List<java.util.concurrent.Future<?>> futures = new ArrayList<>();
        for (int rank = 0; rank < 2; rank++) {
          Communicator comm = group.communicator(rank);
          Tensor tensor = tensors[rank];
          tensor.fill(rank + 1);
          futures.add(
              pool.submit(
                  () ->
                      comm.withDeadline(Duration.ofSeconds(20)).allReduce(tensor, ReduceOp.SUM)));
        }
        for (java.util.concurrent.Future<?> future : futures) {
          future.get();
        }
      } finally {
        pool.shutdown();
      }
      assertThat(tensors[0].getDouble(3)).isEqualTo(3);
      assertThat(tensors[1].getDouble(0)).isEqualTo(3);
    }
  }

  @Test
  void wrongArgumentsAreNamed() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator comm = group.communicator(0);
      Tensor four = Tensor.allocate(DType.F32, 4);
      Tensor five = Tensor.allocate(DType.F32, 5);
      Tensor ints = Tensor.allocate(DType.I32, 4);
      Tensor strided = Tensor.allocate(DType.F32, 4, 2).select(1, 0);
      refused(() -> comm.allGather(four, five), "allGather: out has 5 elements");
      refused(() -> comm.allGather(four, ints), "dtype");
      refused(() -> comm.allGather(strided, four), "not contiguous");
      refused(() -> comm.allGather(five.narrow(0, 1, 4), five.narrow(0, 0, 4)), "overlaps");
      refused(() -> comm.reduceScatter(four, five, ReduceOp.SUM), "reduceScatter: in has 4");
      refused(() -> comm.allReduce(four, five, ReduceOp.SUM), "4 elements");
      refused(() -> comm.allReduce(four, ints, ReduceOp.SUM), "dtype");
      refused(
          () -> comm.allReduce(five.narrow(0, 0, 4), five.narrow(0, 1, 4), ReduceOp.SUM),
          "overlaps");
      refused(() -> comm.allReduce(four, four, ReduceOp.SUM, Algorithm.PUSH), "algorithm");
      refused(() -> comm.scatter(four, four, 1), "scatter: root is 1");
      missing(() -> comm.scatter(null, four, 0), "in");
      missing(() -> comm.gather(four, null, 0), "out");
      refused(() -> comm.gather(four, four, -1), "gather: root is -1");
      missing(() -> comm.reduce(four, null, ReduceOp.SUM, 0), "out");
      refused(() -> comm.reduce(four, four, ReduceOp.SUM, 7), "reduce: root is 7");
      assertThatThrownBy(() -> comm.allReduce(ints, ReduceOp.AVG))
          .isInstanceOf(UnsupportedException.class)
          .hasMessageContaining("i32")
          .hasMessageContaining("avg");
      comm.allReduce(four, ReduceOp.SUM);
    }
  }

  private static void missing(Runnable call, String name) {
    assertThatThrownBy(call::run).isInstanceOf(NullPointerException.class).hasMessage(name);
  }

  private static void refused(Runnable call, String part) {
    assertThatThrownBy(call::run)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(part);
  }
}
