// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.UnsupportedException;

/**
 * Generates the terms that ranks add in a reduction and checks their sums. The terms are
 * {@link Digits}, one for each rank.
 */
public final class Sums {
  private final DType dtype;
  private final int ranks;
  private final long[] inputBits;
  private final long[] sumBits;

  public Sums(DType dtype, int ranks) {
    require(dtype);
    this.dtype = dtype;
    this.ranks = ranks;
    this.inputBits = Digits.encode(dtype, ReduceOp.SUM);
    this.sumBits = Digits.encodeReduced(dtype, ReduceOp.SUM, ranks);
  }

  /** Throws an UnsupportedException if elements of {@code dtype} cannot be summed. */
  public static void require(DType dtype) {
    if (!dtype.canReduce(ReduceOp.SUM)) {
      throw new UnsupportedException("elements of " + dtype + " have no sum");
    }
  }

  /** Returns true if the sums are exact in every order of addition. */
  public boolean areExact() {
    if (!dtype.isFloating()) {
      return true;
    }
    double[] possible = new double[(Digits.COUNT - 1) * ranks + 1];
    Arrays.setAll(possible, i -> i);
    double[] rounded = new double[possible.length];
    try (Tensor exact = Tensor.allocate(DType.F64, possible.length);
        Tensor cast = Tensor.allocate(dtype, possible.length)) {
      exact.copyFrom(possible);
      cast.copyFrom(exact);
      exact.copyFrom(cast);
      exact.copyTo(rounded);
    }
    return Arrays.equals(possible, rounded);
  }

  /** Writes the whole input that {@code rank} has in {@code iteration}. Allocates nothing. */
  public void rewrite(ByteBuffer input, int rank, long iteration) {
    Digits.write(input, rank, inputBits, dtype.bytes(), iteration);
  }

  /**
   * Compares {@code sums} with the sums over all ranks of their inputs.
   *
   * @param first index in the inputs of the first element of {@code sums}
   * @return index in {@code sums} of the first wrong element, or -1 if all are right
   */
  public int mismatch(ByteBuffer sums, long first, long iteration) {
    return Digits.mismatch(sums, first, sumBits, dtype.bytes(), iteration);
  }
}
