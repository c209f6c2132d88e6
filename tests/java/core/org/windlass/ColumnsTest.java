// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/**
 * All-gather along dimension 1 against a loop over rows, ranks and columns, byte for byte:
 * launches x ranks x shapes x dtypes x plain or window.
 */
class ColumnsTest {
  private static final int[] RANKS = {1, 2, 3, 4, 7};
  private static final DType[] DTYPES = {DType.U8, DType.BF16, DType.F32, DType.F64};

  /** Rows and columns: none, one, odd, a row or a column alone, and larger than a piece. */
  private static final int[][] SHAPES = {
    {0, 4}, {4, 0}, {1, 1}, {1, 33}, {33, 1}, {7, 13}, {64, 64}, {3, 20_001}, {2_003, 17}
  };

  static Stream<org.junit.jupiter.params.provider.Arguments> cases() {
    return Ranks.everywhereWith(RANKS, (Object[]) DTYPES);
  }

  /** Byte {@code b} of the element at {@code row}, {@code column} of what {@code rank} brings. */
  private static byte byteAt(int rank, int row, int column, int b) {
    return (byte) (rank * 83 + row * 31 + column * 7 + b * 101 + (row * column >> 8));
  }

  private static byte[] input(int rank, int[] shape, int size) {
    ByteBuffer bytes = ByteBuffer.allocate(shape[0] * shape[1] * size);
    for (int row = 0; row < shape[0]; row++) {
      put(bytes, rank, row, shape[1], size);
    }
    return bytes.array();
  }

  private static byte[] expected(int ranks, int[] shape, int size) {
    ByteBuffer bytes = ByteBuffer.allocate(ranks * shape[0] * shape[1] * size);
    for (int row = 0; row < shape[0]; row++) {
      for (int rank = 0; rank < ranks; rank++) {
        put(bytes, rank, row, shape[1], size);
      }
    }
    return bytes.array();
  }

  private static void put(ByteBuffer bytes, int rank, int row, int columns, int size) {
    for (int column = 0; column < columns; column++) {
      for (int b = 0; b < size; b++) {
        bytes.put(byteAt(rank, row, column, b));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void columnsLieSideBySideOnEveryRank(Ranks ranks, DType dtype) {
    ranks.run(
        communicator -> {
          int n = communicator.size();
          for (int[] shape : SHAPES) {
            long bytes = (long) shape[0] * shape[1] * dtype.bytes();
            try (Window window = communicator.window((n + 1) * bytes + 256)) {
              long[] whole = {shape[0], (long) n * shape[1]};
              gather(
                  communicator,
                  shape,
                  window.tensor(dtype, shape[0], shape[1]),
                  window.tensor(dtype, whole));
              gather(
                  communicator,
                  shape,
                  Tensor.allocate(dtype, shape[0], shape[1]),
                  Tensor.allocate(dtype, whole));
            }
          }
        });
  }

  private static void gather(Communicator communicator, int[] shape, Tensor in, Tensor out) {
    in.asByteBuffer().put(input(communicator.rank(), shape, in.dtype().bytes()));
    communicator.allGather(in, out, 1);
    in.asByteBuffer().put(new byte[(int) in.bytes()]); // inputs may be changed at once
    byte[] found = new byte[(int) out.bytes()];
    out.asByteBuffer().get(found);
    assertThat(found)
        .as("rank %d of %d, %s", communicator.rank(), communicator.size(), in)
        .isEqualTo(expected(communicator.size(), shape, in.dtype().bytes()));
  }

  @OnRanks(2)
  void whatAreNoMatricesOfAsManyRowsIsRefused(Ranks ranks) {
    ranks.run(
        communicator -> {
          refuses(communicator, new long[] {6}, new long[] {3, 4}, "dim is 1");
          refuses(communicator, new long[] {3, 2, 1}, new long[] {3, 4}, "except in dim 1");
          refuses(communicator, new long[] {3, 2}, new long[] {12}, "except in dim 1");
          refuses(communicator, new long[] {3, 2}, new long[] {2, 6}, "except in dim 1");
          refuses(communicator, new long[] {3, 2}, new long[] {3, 5}, "must have 2 times as many");
          Tensor both = Tensor.allocate(DType.F32, 3, 4);
          Tensor half = both.reshape(12).narrow(0, 0, 6).reshape(3, 2);
          assertThatThrownBy(() -> communicator.allGather(half, both, 1))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContainingAll("allGatherDim", "does not work in place");
        });
  }

  private static void refuses(Communicator communicator, long[] in, long[] out, String why) {
    assertThatThrownBy(
            () ->
                communicator.allGather(
                    Tensor.allocate(DType.F32, in), Tensor.allocate(DType.F32, out), 1))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContainingAll("allGather", why);
  }

  @OnRanks(2)
  void dimensionZeroIsTheOrdinaryOneAndOthersJoinInnerOnes(Ranks ranks) {
    ranks.run(
        communicator -> {
          int rank = communicator.rank();
          Tensor in = Tensor.allocate(DType.I32, 1, 2, 1).copyFrom(new int[] {rank, 10 + rank});
          Tensor out = Tensor.allocate(DType.I32, 2, 2, 1);
          communicator.allGather(in, out, 0);
          int[] found = new int[4];
          out.copyTo(found);
          assertThat(found).containsExactly(0, 10, 1, 11);
          assertThatThrownBy(() -> communicator.allGather(in, out.reshape(1, 4, 1), 0))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContainingAll("allGather", "except in dim 0");
          assertThatThrownBy(() -> communicator.allGather(in, out, 3))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContainingAll("allGather", "dim is 3");
          communicator.allGather(in, out.reshape(1, 2, 2), 2);
          out.copyTo(found);
          assertThat(found).containsExactly(0, 1, 10, 11);
        });
  }

  @OnRanks(2)
  void ranksThatDifferInRowsAreTold(Ranks ranks) {
    ranks.run(
        communicator -> {
          long rows = communicator.rank() == 0 ? 3 : 4;
          assertThatThrownBy(
                  () ->
                      communicator.allGather(
                          Tensor.allocate(DType.F32, rows, 12 / rows),
                          Tensor.allocate(DType.F32, rows, 24 / rows),
                          1))
              .isInstanceOf(MismatchException.class)
              .hasMessageContainingAll("3 rows", "4 rows");
        });
  }
}
