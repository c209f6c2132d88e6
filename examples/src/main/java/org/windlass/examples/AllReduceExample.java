// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.List;
import org.windlass.Algorithm;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;

/**
 * Shows an all-reduce with each algorithm: all ranks end with the sum of their tensors. Use
 * {@code auto} by default. Choose another algorithm if the order of a sum or the traffic matters.
 */
public final class AllReduceExample {
  private static final int COUNT = 50_000;
  private static final List<Algorithm> ALGORITHMS =
      List.of(
          Algorithm.AUTO,
          Algorithm.ONE_PHASE,
          Algorithm.TWO_PHASE,
          Algorithm.RING,
          Algorithm.BIDIRECTIONAL_RING);

  private AllReduceExample() {}

  public static void main(String[] args) {
    Examples.main(AllReduceExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    int sumOfRanks = ranks * (ranks - 1) / 2;
    group.run(
        comm -> {
          try (var window = comm.window(2L * COUNT * Float.BYTES)) {
            var in = window.tensor(DType.F32, COUNT);
            var sum = window.tensor(DType.F32, COUNT);
            Golden.fill(in, i -> base(i) + comm.rank());
            for (Algorithm algorithm : ALGORITHMS) {
              sum.fill(-1);

              comm.allReduce(in, sum, ReduceOp.SUM, algorithm);

              Golden.check(sum, i -> ranks * base(i) + sumOfRanks);
            }

            comm.allReduce(in, ReduceOp.SUM); // In place.

            Golden.check(in, i -> ranks * base(i) + sumOfRanks);
          }
        });
    out.printf(
        "all-reduce: %d ranks, %d sums by each of %d algorithms equal the golden ones%n",
        ranks, COUNT, ALGORITHMS.size());
  }

  /** Returns element {@code i} of rank 0. Rank r adds r to it. */
  private static float base(int i) {
    return 1 + i % 1024 / 4f;
  }
}
