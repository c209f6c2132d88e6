// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import org.windlass.Communicator;

/**
 * A wait in place of an operation: each rank reads the clock until a time has passed. If samples
 * take longer than that time, the machine is the cause. So an operation with the same median can't
 * have better high percentiles.
 *
 * @param bytes size of the operation that the wait replaces
 * @param nanos time to wait, in nanoseconds
 */
public record WaitWorkload(int ranks, long bytes, long nanos) implements Workload {
  @Override
  public RankWork open(Communicator comm) {
    return new RankWork() {
      @Override
      public void call() {
        long start = System.nanoTime();
        while (System.nanoTime() - start < nanos) {}
      }

      @Override
      public void verify(long iteration) {}

      @Override
      public void close() {}
    };
  }
}
