// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.List;
import java.util.stream.IntStream;

/**
 * Records when each rank was ready and when it left, for every iteration, in nanoseconds on one
 * clock. The constructor allocates all memory, and no two ranks write to one cache line.
 */
public final class Stamps {
  private static final int PAD = 16;

  private final int iterations;
  private final long[][] ready;
  private final long[][] leave;

  public Stamps(int ranks, int iterations) {
    this.iterations = iterations;
    this.ready = new long[ranks][PAD + iterations + PAD];
    this.leave = new long[ranks][PAD + iterations + PAD];
  }

  public int ranks() {
    return ready.length;
  }

  public int iterations() {
    return iterations;
  }

  public void set(int rank, int iteration, long readyNanos, long leaveNanos) {
    ready[rank][PAD + iteration] = readyNanos;
    leave[rank][PAD + iteration] = leaveNanos;
  }

  public long ready(int rank, int iteration) {
    return ready[rank][PAD + iteration];
  }

  public long leave(int rank, int iteration) {
    return leave[rank][PAD + iteration];
  }

  long sample(int iteration) {
    // Subtract one stamp from all: values may wrap, since the clock's origin is arbitrary.
    long origin = ready(0, iteration);
    long lastReady = 0;
    long lastLeave = leave(0, iteration) - origin;
    for (int rank = 1; rank < ranks(); rank++) {
      lastReady = Math.max(lastReady, ready(rank, iteration) - origin);
      lastLeave = Math.max(lastLeave, leave(rank, iteration) - origin);
    }
    return lastLeave - lastReady;
  }

  static long[] sortedSamples(List<Stamps> batches) {
    return batches.stream()
        .flatMapToLong(batch -> IntStream.range(0, batch.iterations).mapToLong(batch::sample))
        .sorted()
        .toArray();
  }

  /**
   * Returns the smallest sample for which a fraction {@code share} of all samples is not larger.
   */
  static long quantile(long[] sorted, double share) {
    int rank = (int) Math.ceil(share * sorted.length);
    return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1];
  }
}
