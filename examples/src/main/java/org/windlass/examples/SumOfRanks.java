// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.time.Duration;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

/**
 * Runs one rank under any launcher, on one host or several. It adds the ranks' tensors and checks
 * the sum. The files of {@code examples/launchers} start it.
 */
public final class SumOfRanks {
  private static final int COUNT = 1 << 20;

  /** Deadline of the start. Hosts of a cluster may start minutes apart. */
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
      // Print a whole line at once, since other ranks print too.
      System.out.println("rank " + comm.rank() + " of " + size + ": " + COUNT + " sums are right");
    }
  }
}
