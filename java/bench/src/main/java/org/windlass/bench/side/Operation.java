// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.windlass.bench.data.Floor;

/**
 * A collective that fills buffers. A buffer has one row of a bench's {@code bytes}, or one for each
 * rank.
 */
public enum Operation {
  /** Row r of the input goes to rank r, whose output has a row from each rank. */
  ALL_TO_ALL(true, true, Floor::allToAllMicros),
  /** In place, from rank {@link #ROOT} in samples and from each rank in turn in a stream. */
  BROADCAST(false, false, Floor::broadcastMicros),
  ALL_GATHER(false, true, Floor::allGatherMicros),
  REDUCE_SCATTER(true, false, Floor::reduceScatterMicros),
  ALL_REDUCE(false, false, Floor::allReduceMicros);

  public static final int ROOT = 0;

  private final boolean inputPerRank;
  private final boolean outputPerRank;
  private final FloorMicros floor;

  private interface FloorMicros {
    double measure(int ranks, long bytes, int iterations);
  }

  Operation(boolean inputPerRank, boolean outputPerRank, FloorMicros floor) {
    this.inputPerRank = inputPerRank;
    this.outputPerRank = outputPerRank;
    this.floor = floor;
  }

  /** The operation that the command line calls {@code name}. */
  public static Optional<Operation> named(String name) {
    return Arrays.stream(values()).filter(each -> each.toString().equals(name)).findFirst();
  }

  /** Whether outputs are sums. */
  public boolean sums() {
    return this == REDUCE_SCATTER || this == ALL_REDUCE;
  }

  public long inputBytes(int ranks, long bytes) {
    return inputPerRank ? Math.multiplyExact(ranks, bytes) : bytes;
  }

  public long outputBytes(int ranks, long bytes) {
    return outputPerRank ? Math.multiplyExact(ranks, bytes) : bytes;
  }

  /** The shape of an input of rows of {@code count} elements. */
  long[] inputShape(int ranks, long count) {
    return inputPerRank ? new long[] {ranks, count} : new long[] {count};
  }

  long[] outputShape(int ranks, long count) {
    return outputPerRank ? new long[] {ranks, count} : new long[] {count};
  }

  /**
   * Bytes that the rank which receives most receives from others. In an all-reduce, by whatever
   * algorithm, those are of ranks that share the sums evenly: the terms of a rank's share, and the
   * shares of the others.
   */
  public long receivedBytes(int ranks, long bytes) {
    return switch (this) {
      case ALL_TO_ALL, ALL_GATHER, REDUCE_SCATTER -> (ranks - 1) * bytes;
      case BROADCAST -> ranks == 1 ? 0 : bytes;
      case ALL_REDUCE -> 2 * (ranks - 1) * bytes / ranks;
    };
  }

  /** Median time in microseconds in which pinned threads move just the bytes; sums are of f32. */
  public double floorMicros(int ranks, long bytes, int iterations) {
    return floor.measure(ranks, bytes, iterations);
  }

  /** As the command line has it: {@code all-to-all}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
