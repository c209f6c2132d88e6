// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.util.Arrays;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.NativeMemory;

/**
 * The result of routing the tokens of a dispatch. It maps this rank's tokens to the rows of their
 * experts, and holds the number of rows that arrived at each expert of this rank. Only one call at
 * a time may use it. It changes only in a dispatch that passes expert ids.
 */
public final class ExpertRouting implements AutoCloseable {
  private final ExpertParallel experts;
  private final Window window;
  private final int number;
  private final DistributedTensor table;
  private final IntBuffer nativeStarts;
  private final IntBuffer nativeCounts;

  /** For each expert of this rank: index of its first row, number of rows. 0 before a dispatch. */
  private final int[] starts;

  private final int[] counts;

  ExpertRouting(ExpertParallel experts, Window window, ExpertLayout layout, int number) {
    this.number = number;
    this.experts = experts;
    this.window = window;
    this.table = window.tensorAt(0, DType.U8, layout.tableBytes());
    this.starts = new int[experts.localExperts()];
    this.counts = new int[experts.localExperts()];
    this.nativeStarts = ints(layout.startsAt());
    this.nativeCounts = ints(layout.getsAt());
  }

  private IntBuffer ints(long offset) {
    return NativeMemory.buffer(table.address() + offset, Integer.BYTES * (long) starts.length)
        .order(ByteOrder.nativeOrder())
        .asIntBuffer();
  }

  /**
   * Returns the number of rows that an expert of this rank received in the last dispatch.
   *
   * @param localExpert index among this rank's experts, from 0: the id of the expert minus {@link
   *     ExpertParallel#firstExpert}
   * @throws InvalidArgumentException if this rank has no such expert
   */
  public int count(int localExpert) {
    return counts[checked(localExpert)];
  }

  /**
   * Returns the index of the first row of an expert of this rank. It is a multiple of the options'
   * alignment.
   *
   * @param localExpert index among this rank's experts, from 0: the id of the expert minus {@link
   *     ExpertParallel#firstExpert}
   * @throws InvalidArgumentException if this rank has no such expert
   */
  public int start(int localExpert) {
    return starts[checked(localExpert)];
  }

  /**
   * Returns the rows of an expert of this rank: [{@link #count}, hidden] of {@link
   * ExpertParallel#rows}.
   *
   * @param localExpert index among this rank's experts, from 0: the id of the expert minus {@link
   *     ExpertParallel#firstExpert}
   * @throws InvalidArgumentException if this rank has no such expert
   */
  public DistributedTensor rows(int localExpert) {
    return experts.rows().narrow(0, start(localExpert), count(localExpert));
  }

  /** Returns the number of rows that all experts of this rank received in the last dispatch. */
  public long received() {
    return Arrays.stream(counts).asLongStream().sum();
  }

  private int checked(int localExpert) {
    if (localExpert < 0 || localExpert >= counts.length) {
      int first = experts.firstExpert();
      throw new InvalidArgumentException(
          "localExpert is " + localExpert + "; it must lie in [0, " + counts.length
              + "), and stands for experts " + first + " to " + (first + counts.length - 1));
    }
    return localExpert;
  }

  boolean isOf(Window rows) {
    return experts.rows().window() == rows;
  }

  /** Returns the number of routings that the communicator had before; the same on all ranks. */
  int number() {
    return number;
  }

  DistributedTensor table() {
    return table;
  }

  void clear() {
    Arrays.fill(starts, 0);
    Arrays.fill(counts, 0);
  }

  /** Copies starts and counts from the native table, whose memory the caller has pinned. */
  void update() {
    nativeStarts.get(0, starts);
    nativeCounts.get(0, counts);
  }

  /** Closes the memory of this routing on this rank. Further calls have no effect. */
  @Override
  public void close() {
    window.close();
  }
}
