// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import org.windlass.bench.data.Floor;
import org.windlass.internal.Native;

/**
 * A collective on buffers. A buffer has one row, or a row for each rank. A row has {@code bytes}
 * bytes.
 */
public enum Operation {
  /** All-to-all: row r of the input goes to rank r. Row s of the output comes from rank s. */
  ALL_TO_ALL(true, true, Native.WL_OP_ALL_TO_ALL),
  /** Broadcasts in place. The root is {@link #ROOT} in samples, and rotates in a stream. */
  BROADCAST(false, false, Native.WL_OP_BROADCAST),
  ALL_GATHER(false, true, Native.WL_OP_ALL_GATHER),
  REDUCE_SCATTER(true, false, Native.WL_OP_REDUCE_SCATTER),
  ALL_REDUCE(false, false, Native.WL_OP_ALL_REDUCE);

  public static final int ROOT = 0;

  private final boolean inputPerRank;
  private final boolean outputPerRank;
  private final int code;

  Operation(boolean inputPerRank, boolean outputPerRank, int code) {
    this.inputPerRank = inputPerRank;
    this.outputPerRank = outputPerRank;
    this.code = code;
  }

  public static Optional<Operation> named(String name) {
    return Arrays.stream(values()).filter(each -> each.toString().equals(name)).findFirst();
  }

  public boolean sums() {
    return this == REDUCE_SCATTER || this == ALL_REDUCE;
  }

  /** Returns the bytes of a rank's input, whose rows have {@code bytes} bytes each. */
  public long inputBytes(int ranks, long bytes) {
    return inputPerRank ? Math.multiplyExact(ranks, bytes) : bytes;
  }

  public long outputBytes(int ranks, long bytes) {
    return outputPerRank ? Math.multiplyExact(ranks, bytes) : bytes;
  }

  long[] inputShape(int ranks, long count) {
    return inputPerRank ? new long[] {ranks, count} : new long[] {count};
  }

  long[] outputShape(int ranks, long count) {
    return outputPerRank ? new long[] {ranks, count} : new long[] {count};
  }

  /**
   * Returns the largest number of bytes that a rank receives from other ranks. For an all-reduce,
   * this assumes that ranks share the sums evenly: each receives the terms of its share, and the
   * sums of the other shares.
   */
  public long receivedBytes(int ranks, long bytes) {
    return switch (this) {
      case ALL_TO_ALL, ALL_GATHER, REDUCE_SCATTER -> (ranks - 1) * bytes;
      case BROADCAST -> ranks == 1 ? 0 : bytes;
      case ALL_REDUCE -> 2 * (ranks - 1) * bytes / ranks;
    };
  }

  /** Returns the median time, in microseconds, that pinned threads need to only move the bytes. */
  public double floorMicros(int ranks, long bytes, int iterations) {
    return Floor.operationMicros(code, ranks, bytes, iterations);
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
