// SPDX-License-Identifier: Apache-2.0
package org.windlass.consumer;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

/** Sixteen ranks, each a virtual thread, sum again and again; each checks its sums. */
public final class VirtualRanks {
  private static final int RANKS = 16;
  private static final int SUMS = 100;

  private VirtualRanks() {}

  public static void main(String[] arguments) throws Exception {
    // Java 17, which this is compiled for, has none.
    var startVirtualThread = Thread.class.getMethod("startVirtualThread", Runnable.class);
    var complete = new AtomicInteger();
    try (var group = LocalGroup.of(RANKS)) {
      List<Thread> threads = new ArrayList<>();
      for (Communicator comm : group.communicators()) {
        Runnable rank =
            () -> {
              try {
                sum(comm);
                complete.incrementAndGet();
              } catch (RuntimeException | Error fault) {
                comm.abort(fault.toString());
                throw fault;
              }
            };
        threads.add((Thread) startVirtualThread.invoke(null, rank));
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
    if (complete.get() != RANKS) {
      throw new AssertionError(complete.get() + " of " + RANKS + " ranks completed");
    }
    System.out.println("all completed");
  }

  private static void sum(Communicator comm) {
    try (Tensor tensor = Tensor.allocate(DType.I32, 1000)) {
      for (int round = 0; round < SUMS; round++) {
        tensor.fill(comm.rank() + round);
        comm.allReduce(tensor, ReduceOp.SUM);
        int expected = RANKS * (RANKS - 1) / 2 + RANKS * round;
        if (tensor.getDouble(0) != expected || tensor.getDouble(999) != expected) {
          throw new AssertionError("rank " + comm.rank() + " got " + tensor.getDouble(0));
        }
      }
    }
  }
}
