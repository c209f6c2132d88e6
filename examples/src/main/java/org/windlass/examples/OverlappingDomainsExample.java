// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;

/**
 * Shows overlapping domains. The ranks form a chain of pairs, {0,1}, {1,2}, {2,3} and so on, and
 * each pair is a communicator. Every rank inside the chain is in two of them. A running sum passes
 * along the chain. Each rank receives it from its left pair, adds its own row, and broadcasts it to
 * its right pair.
 */
public final class OverlappingDomainsExample {
  private static final int COLUMNS = 256;

  private OverlappingDomainsExample() {}

  public static void main(String[] args) {
    Examples.main(OverlappingDomainsExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          int rank = comm.rank();
          // Colors pair the ranks off from rank 0 in one split, and from rank 1 in the other.
          try (var even = comm.split(rank / 2, rank);
              var odd = comm.split((rank + 1) / 2, rank)) {
            runningSum(rank, rank % 2 == 0 ? odd : even, rank % 2 == 0 ? even : odd);
          }
        });
    out.printf(
        "overlapping-domains: %d ranks, %d running sums each equal the golden ones%n",
        ranks, COLUMNS);
  }

  /**
   * Passes the running sum along the chain.
   *
   * @param left this rank and the one before it, or only this rank at the start of the chain
   * @param right this rank and the one after it, or only this rank at the end of the chain
   */
  private static void runningSum(int rank, Communicator left, Communicator right) {
    float[] sum = new float[COLUMNS];
    try (var row = Tensor.allocate(DType.F32, COLUMNS)) {
      if (left.size() == 2) {
        left.broadcast(row, 0);
        row.copyTo(sum);
      }
      for (int i = 0; i < COLUMNS; i++) {
        sum[i] += rank + i;
      }
      row.copyFrom(sum);

      // Each rank r from 0 to `rank` has added r + i.
      Golden.check(row, i -> rank * (rank + 1) / 2 + (rank + 1) * i);

      right.broadcast(row, 0);
    }
  }
}
