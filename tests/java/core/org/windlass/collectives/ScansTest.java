// SPDX-License-Identifier: Apache-2.0
package org.windlass.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.testing.ScalarReference;

/**
 * Scans, reduce-scatters along a dimension, and premultiplied sums of random elements against slow
 * references, bit for bit: launches x ranks x shapes x dtypes x ops x plain or window.
 */
class ScansTest {
  private static final int[] RANKS = {1, 2, 3, 4, 8};
  private static final DType[] DTYPES = {
    DType.F32, DType.I32, DType.F64, DType.BF16, DType.U8, DType.F16, DType.I64, DType.F8E4M3,
    DType.BOOL, DType.U16, DType.F8E5M2
  };

  /** Shapes of a part, along any dimension of which parts lie side by side. */
  private static final long[][] SHAPES = {
    {0}, {1}, {5}, {3, 0, 2}, {1, 1, 3}, {2, 3, 5}, {257}, {41, 25}, {3, 7, 13, 2}, {2, 1_025, 3},
    {60_001}
  };

  static Stream<org.junit.jupiter.params.provider.Arguments> cases() {
    return Ranks.everywhereWith(RANKS, (Object[]) DTYPES);
  }

  /** The elements of all ranks, which each of them makes from the seed. */
  private record Elements(DType dtype, long seed, int ranks) {
    long at(int rank, long index) {
      SplittableRandom random = new SplittableRandom(seed + 31 * rank + 1_000_003 * index);
      if (dtype == DType.BOOL) {
        return random.nextInt(2);
      }
      if (!dtype.isFloating()) {
        return random.nextLong() & mask();
      }
      double value =
          switch (random.nextInt(40)) {
            case 0 -> Double.NaN;
            case 1 -> Double.NEGATIVE_INFINITY;
            case 2 -> -0.0;
            default -> (random.nextDouble() - 0.5) * Math.scalb(1.0, random.nextInt(12) - 6);
          };
      return ScalarReference.encode(dtype, value);
    }

    long mask() {
      return dtype.bytes() == 8 ? -1L : (1L << 8 * dtype.bytes()) - 1;
    }

    /** The fold of one element of the first ranks. */
    long folded(ReduceOp op, int terms, long index) {
      if (terms == 0) {
        return identity(op);
      }
      long[] codes = new long[terms];
      for (int rank = 0; rank < terms; rank++) {
        codes[rank] = at(rank, index);
      }
      return ScalarReference.fold(dtype, op, codes) & mask();
    }

    private long identity(ReduceOp op) {
      boolean signed = dtype == DType.I32 || dtype == DType.I64;
      long top = 1L << dtype.bits() - 1;
      return switch (op) {
        case SUM, OR, XOR, AVG -> 0;
        case AND -> mask();
        case PRODUCT -> dtype.isFloating() ? ScalarReference.encode(dtype, 1) : 1;
        case MAX ->
            dtype.isFloating()
                ? ScalarReference.encode(dtype, Double.NEGATIVE_INFINITY)
                : signed ? top : 0;
        case MIN ->
            dtype.isFloating()
                ? ScalarReference.encode(dtype, Double.POSITIVE_INFINITY)
                : dtype == DType.BOOL ? 1 : signed ? top - 1 : mask();
      };
    }

    /** The premultiplied sum of one element of the first ranks. */
    long premultiplied(int terms, long index) {
      double wide = 0;
      float sum = 0;
      for (int rank = 0; rank < terms; rank++) {
        double value = ScalarReference.decode(dtype, at(rank, index));
        double wideProduct = factor(rank) * value;
        float product = (float) factor(rank) * (float) value;
        wide = rank == 0 ? wideProduct : wide + wideProduct;
        sum = rank == 0 ? product : sum + product;
      }
      return ScalarReference.encode(dtype, dtype == DType.F64 ? wide : sum);
    }

    void fill(Tensor tensor, int rank) {
      ByteBuffer bytes = tensor.asByteBuffer();
      for (int i = 0; i < tensor.numel(); i++) {
        long bits = at(rank, i);
        switch (dtype.bytes()) {
          case 1 -> bytes.put(i, (byte) bits);
          case 2 -> bytes.putShort(2 * i, (short) bits);
          case 4 -> bytes.putInt(4 * i, (int) bits);
          default -> bytes.putLong(8 * i, bits);
        }
      }
    }
  }

  private static double factor(int rank) {
    return 1.0 / (3 + rank);
  }

  @FunctionalInterface
  private interface Expected {
    long bits(long index);
  }

  private static void check(String what, Tensor got, Elements of, Expected expected) {
    ByteBuffer bytes = got.asByteBuffer();
    for (int i = 0; i < got.numel(); i++) {
      long seen =
          switch (of.dtype.bytes()) {
            case 1 -> bytes.get(i) & 0xffL;
            case 2 -> bytes.getShort(2 * i) & 0xffffL;
            case 4 -> bytes.getInt(4 * i) & 0xffffffffL;
            default -> bytes.getLong(8 * i);
          };
      if (seen != expected.bits(i)) {
        assertThat(Long.toHexString(seen))
            .as("%s, element %d of %s, seed %d", what, i, got, of.seed)
            .isEqualTo(Long.toHexString(expected.bits(i)));
      }
    }
  }

  private static Tensor make(Window window, boolean inWindow, DType dtype, long... shape) {
    return inWindow ? window.tensor(dtype, shape) : Tensor.allocate(dtype, shape);
  }

  @ParameterizedTest
  @MethodSource("cases")
  void matchTheReference(Ranks ranks, DType dtype) {
    long seed = new Random().nextLong() >> 1;
    ranks.run(
        comm -> {
          Elements of = new Elements(dtype, seed, comm.size());
          for (int s = 0; s < SHAPES.length; s++) {
            if (ranks.isWhole() || (s + dtype.ordinal()) % 3 == 0) {
              long[] shape = SHAPES[s];
              long numel = 1;
              for (long extent : shape) {
                numel *= extent;
              }
              long bytes = (comm.size() + 2) * (numel * dtype.bytes() + 64);
              try (Window window = comm.window(bytes)) {
                run(comm, of, window, (s + comm.size()) % 2 == 0, shape);
              }
            }
          }
        });
  }

  private static void run(
      Communicator comm, Elements of, Window window, boolean inWindow, long[] shape) {
    int rank = comm.rank();
    Tensor part = make(window, inWindow, of.dtype, shape);
    Tensor in = make(window, inWindow, of.dtype, shape);
    long[] whole = shape.clone();
    int dim = (int) ((of.seed & 0xff) % shape.length);
    whole[dim] *= comm.size();
    Tensor all = make(window, inWindow, of.dtype, whole);
    long inner = 1;
    for (int d = dim; d < shape.length; d++) {
      inner *= shape[d];
    }
    long columns = inner;
    Place place = i -> (i / columns * comm.size() + rank) * columns + i % columns;
    of.fill(in, rank);
    of.fill(all, rank);
    for (ReduceOp op : ReduceOp.values()) {
      if (!of.dtype.canReduce(op)) {
        continue;
      }
      comm.reduceScatter(all, part, op, dim);
      check(
          "reduce-scatter " + op + " along " + dim, part, of,
          i -> of.folded(op, comm.size(), place.of(i)));
      if (op != ReduceOp.AVG) {
        comm.scan(in, part, op);
        check("scan " + op, part, of, i -> of.folded(op, rank + 1, i));
        comm.exclusiveScan(in, part, op);
        check("exclusive scan " + op, part, of, i -> of.folded(op, rank, i));
      }
    }
    if (of.dtype.isFloating()) {
      premultiplied(comm, of, in, part);
    }
    comm.allGather(in, all, dim);
    check(
        "all-gather along " + dim, all, of,
        i ->
            of.at(
                (int) (i / columns % comm.size()),
                i / columns / comm.size() * columns + i % columns));
    comm.barrier();
  }

  /** Where an element of a rank's columns lies in the whole. */
  @FunctionalInterface
  private interface Place {
    long of(long index);
  }

  private static void premultiplied(Communicator comm, Elements of, Tensor in, Tensor out) {
    int rank = comm.rank();
    int n = comm.size();
    double factor = factor(rank);
    comm.scan(in, out, factor);
    check("premultiplied scan", out, of, i -> of.premultiplied(rank + 1, i));
    comm.exclusiveScan(in, out, factor);
    check("premultiplied exclusive scan", out, of, i -> of.premultiplied(rank, i));
    comm.allReduce(in, out, factor);
    check("premultiplied all-reduce", out, of, i -> of.premultiplied(n, i));
    comm.reduce(in, rank == n - 1 ? out.fill(0) : null, factor, n - 1);
    if (rank == n - 1) {
      check("premultiplied reduce", out, of, i -> of.premultiplied(n, i));
    }
    Tensor whole = Tensor.allocate(of.dtype, n * in.numel());
    of.fill(whole, rank);
    comm.reduceScatter(whole, out, factor);
    check(
        "premultiplied reduce-scatter", out, of,
        i -> of.premultiplied(n, rank * in.numel() + i));
  }

  @OnRanks(2)
  void wrongCallsAreRefused(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor four = Tensor.allocate(DType.F32, 2, 2);
          Tensor eight = Tensor.allocate(DType.F32, 2, 4);
          Tensor ints = Tensor.allocate(DType.I32, 2, 2);
          Tensor bools = Tensor.allocate(DType.BOOL, 4);
          refused(() -> comm.scan(four, eight, ReduceOp.SUM), "scan: in has 4 elements");
          refused(() -> comm.scan(four, four, ReduceOp.SUM), "does not work in place");
          refused(() -> comm.exclusiveScan(four, four, ReduceOp.SUM), "exclusiveScan");
          refused(() -> comm.exclusiveScan(four, ints, ReduceOp.SUM), "dtype");
          refused(() -> comm.reduceScatter(four, four, ReduceOp.SUM, 2), "reduceScatter: dim");
          refused(() -> comm.reduceScatter(eight, four, ReduceOp.SUM, 0), "except in dim 0");
          refused(() -> comm.reduceScatter(eight, four.reshape(4), ReduceOp.SUM, 0), "except in dim 0");
          refused(
              () -> comm.reduceScatter(eight, eight.narrow(0, 0, 1).reshape(2, 2), ReduceOp.SUM, 1),
              "does not work in place");
          unsupported(() -> comm.scan(four, four, ReduceOp.AVG), "scan: avg does not scan");
          unsupported(() -> comm.allReduce(ints, ints, 0.5), "i32", "premultiplied-sum");
          unsupported(() -> comm.allReduce(four, ReduceOp.XOR), "f32", "xor");
          unsupported(() -> comm.allReduce(bools, ReduceOp.AND), "bool", "and");
          assertThatThrownBy(() -> comm.scan(four, four, null))
              .isInstanceOf(NullPointerException.class)
              .hasMessage("op");
          assertThatThrownBy(() -> comm.exclusiveScan(null, four, 0.5))
              .isInstanceOf(NullPointerException.class)
              .hasMessage("in");
          comm.barrier();
        });
  }

  @OnRanks(2)
  void ranksThatDifferAreTold(Ranks ranks) {
    ranks.run(
        comm -> {
          Tensor in = Tensor.allocate(DType.F32, 6);
          Tensor out = Tensor.allocate(DType.F32, 6);
          assertThatThrownBy(
                  () -> {
                    if (comm.rank() == 0) {
                      comm.scan(in, out, ReduceOp.SUM);
                    } else {
                      comm.scan(in, out, 0.5);
                    }
                    comm.barrier();
                  })
              .isInstanceOf(MismatchException.class)
              .hasMessageContainingAll("scan(6 x f32, sum)", "scan(6 x f32, premultiplied-sum)");
        });
  }

  private static void refused(Runnable call, String part) {
    assertThatThrownBy(call::run)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(part);
  }

  private static void unsupported(Runnable call, String... parts) {
    assertThatThrownBy(call::run)
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContainingAll(parts);
  }
}
