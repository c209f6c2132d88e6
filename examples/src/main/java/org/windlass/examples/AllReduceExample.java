// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.List;
import org.windlass.Algorithm;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.VerificationFailedException;

/**
 * All-reduce: all ranks end with the sum of what each of them has, by each algorithm. {@code auto}
 * is what to use: the others are there to choose where the order of a sum or the traffic matters.
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
    group.run(
        comm -> {
          try (var window = comm.window(2L * COUNT * Float.BYTES)) {
            var in = window.tensor(DType.F32, COUNT);
            var sum = window.tensor(DType.F32, COUNT);
            float[] values = new float[COUNT];
            for (int i = 0; i < COUNT; i++) {
              values[i] = input(comm.rank(), i);
            }
            in.copyFrom(values);
            for (Algorithm algorithm : ALGORITHMS) {
              sum.fill(-1.0);

              comm.allReduce(in, sum, ReduceOp.SUM, algorithm);

              sum.copyTo(values);
              check(algorithm, values, ranks);
            }

            comm.allReduce(in, ReduceOp.SUM); // In place.

            in.copyTo(values);
            check(Algorithm.AUTO, values, ranks);
          }
        });
    out.printf(
        "all-reduce: %d ranks, %d sums by each of %d algorithms equal the golden ones%n",
        ranks, COUNT, ALGORITHMS.size());
  }

  private static float input(int rank, int i) {
    return rank + 1 + i % 1024 / 4f;
  }

  private static void check(Algorithm algorithm, float[] sums, int ranks) {
    for (int i = 0; i < COUNT; i++) {
      float golden = ranks * (ranks + 1) / 2 + ranks * (i % 1024 / 4f);
      if (sums[i] != golden) {
        throw new VerificationFailedException(
            algorithm + ": expected " + golden + ", found " + sums[i]);
      }
    }
  }
}
