// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;

/**
 * Shows a reduce-scatter. Every rank has a row for each rank, and ends with the reduction of all
 * ranks' rows for it.
 */
public final class ReduceScatterExample {
  private static final int COLUMNS = 1024;

  private ReduceScatterExample() {}

  public static void main(String[] args) {
    Examples.main(ReduceScatterExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    int lastRank = ranks - 1;
    group.run(
        comm -> {
          try (var window = comm.window((ranks + 1L) * COLUMNS * Float.BYTES)) {
            var in = window.tensor(DType.F32, ranks, COLUMNS);
            var own = window.tensor(DType.F32, COLUMNS);
            Golden.fill(in, i -> base(i) + comm.rank());
            int first = comm.rank() * COLUMNS; // start of this rank's row in `in`

            comm.reduceScatter(in, own, ReduceOp.SUM);

            int sumOfRanks = ranks * lastRank / 2;
            Golden.check(own, i -> ranks * base(first + i) + sumOfRanks);

            comm.reduceScatter(in, own, ReduceOp.MAX);

            Golden.check(own, i -> base(first + i) + lastRank);
          }
        });
    out.printf(
        "reduce-scatter: %d ranks, %d sums and %d maxima each equal the golden ones%n",
        ranks, COLUMNS, COLUMNS);
  }

  /** Returns element {@code i} of rank 0's rows. Rank r adds r to it. */
  private static float base(int i) {
    return i % 4099 / 8f;
  }
}
