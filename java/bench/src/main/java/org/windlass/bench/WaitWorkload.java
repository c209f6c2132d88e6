// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.OptionalDouble;
import org.windlass.Communicator;

/**
 * No operation: each rank reads the clock until a time has passed. What its samples have beyond that
 * time comes from the machine, so an operation of that median has no shorter tail there.
 */
final class WaitWorkload implements Workload {
  private final int ranks;
  private final long bytes;
  private final long nanos;

  /**
   * Waits {@code nanos} nanoseconds.
   *
   * @param bytes the size of the operation in whose place it waits
   */
  WaitWorkload(int ranks, long bytes, long nanos) {
    this.ranks = ranks;
    this.bytes = bytes;
    this.nanos = nanos;
  }

  @Override
  public RankWork open(Communicator comm) {
    return new RankWork() {
      @Override
      public void rewrite(long iteration) {}

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

  @Override
  public int ranks() {
    return ranks;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public long receivedBytes() {
    return 0;
  }

  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.empty();
  }
}
