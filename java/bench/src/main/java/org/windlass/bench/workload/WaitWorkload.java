// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import org.windlass.Communicator;

/**
 * A wait in place of an operation: each rank reads the clock until a time has passed. The machine
 * alone makes its samples longer than that, so no operation with that median has a shorter tail
 * there.
 *
 * @param bytes the size of the operation in whose place it waits
 * @param nanos the time to wait, in nanoseconds
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
