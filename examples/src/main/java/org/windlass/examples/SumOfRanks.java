// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.time.Duration;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

/**
 * A rank of any launcher's, on one host or several: adds up what the ranks hold, and checks it. What
 * the files of {@code examples/launchers} start.
 */
public final class SumOfRanks {
  private static final int COUNT = 1 << 20;

  /** Hosts of a cluster come up minutes apart. */
  private static final Duration START = Duration.ofMinutes(10);

  private SumOfRanks() {}

  public static void main(String[] args) {
    try (Communicator comm =
            Communicator.fromEnvironment(CommunicatorOptions.defaults(), START);
        Tensor numbers = Tensor.allocate(DType.F32, COUNT)) {
      int size = comm.size();
      Golden.fill(numbers, i -> comm.rank() + i % 1024);

      comm.allReduce(numbers, ReduceOp.SUM);

      Golden.check(numbers, i -> size * (size - 1) / 2 + size * (i % 1024));
      // A line at once, between those of the others.
      System.out.println("rank " + comm.rank() + " of " + size + ": " + COUNT + " sums are right");
    }
  }
}
