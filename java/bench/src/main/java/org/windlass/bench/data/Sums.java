// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.UnsupportedException;

/** The terms that ranks add up in a reduction, and their sums: {@link Digits}, a term a rank. */
public final class Sums {
  private final DType dtype;
  private final int ranks;
  private final long[] inputBits;
  private final long[] sumBits;

  /**
   * @throws UnsupportedException if elements of {@code dtype} have no sum
   */
  public Sums(DType dtype, int ranks) {
    if (!dtype.canReduce(ReduceOp.SUM)) {
      throw new UnsupportedException("elements of " + dtype + " have no sum");
    }
    this.dtype = dtype;
    this.ranks = ranks;
    this.inputBits = Digits.encode(dtype, ReduceOp.SUM);
    this.sumBits = Digits.encodeReduced(dtype, ReduceOp.SUM, ranks);
  }

  /** Whether no order of adding up the terms rounds. */
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

  /** Writes the whole input of {@code rank} in {@code iteration}; allocates nothing. */
  public void rewrite(ByteBuffer input, int rank, long iteration) {
    Digits.write(input, rank, inputBits, dtype.bytes(), iteration);
  }

  /**
   * The first element of {@code sums} that isn't the sum over all ranks of the elements from {@code
   * first} on of their inputs; -1 if there is none.
   */
  public int mismatch(ByteBuffer sums, long first, long iteration) {
    return Digits.mismatch(sums, first, sumBits, dtype.bytes(), iteration);
  }
}
