// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.VerificationFailedException;

/**
 * Reduce-scatter: every rank has a row for each rank, and ends with the reduction of the rows that
 * all ranks have for it.
 */
public final class ReduceScatterExample {
  private static final int COLUMNS = 1024;

  private ReduceScatterExample() {}

  public static void main(String[] args) {
    Examples.main(ReduceScatterExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          try (var window = comm.window((ranks + 1L) * COLUMNS * Float.BYTES)) {
            var in = window.tensor(DType.F32, ranks, COLUMNS);
            var own = window.tensor(DType.F32, COLUMNS);
            float[] values = new float[ranks * COLUMNS];
            for (int i = 0; i < values.length; i++) {
              values[i] = comm.rank() + base(i);
            }
            in.copyFrom(values);
            float lastRank = ranks - 1;
            float sumOfRanks = ranks * lastRank / 2;

            comm.reduceScatter(in, own, ReduceOp.SUM);

            float[] found = new float[COLUMNS];
            own.copyTo(found);
            for (int i = 0; i < COLUMNS; i++) {
              check(found[i], ranks * base(comm.rank() * COLUMNS + i) + sumOfRanks);
            }

            comm.reduceScatter(in, own, ReduceOp.MAX);

            own.copyTo(found);
            for (int i = 0; i < COLUMNS; i++) {
              check(found[i], base(comm.rank() * COLUMNS + i) + lastRank);
            }
          }
        });
    out.printf(
        "reduce-scatter: %d ranks, %d sums and %d maxima each equal the golden ones%n",
        ranks, COLUMNS, COLUMNS);
  }

  /** What rank 0 has for element {@code i} of all rows; rank r has r more. */
  private static float base(int i) {
    return i % 4099 / 8f;
  }

  private static void check(float found, float expected) {
    if (found != expected) {
      throw new VerificationFailedException("expected " + expected + ", found " + found);
    }
  }
}
