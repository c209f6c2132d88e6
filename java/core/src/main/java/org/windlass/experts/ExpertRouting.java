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
 * Where the tokens of a dispatch went: which rows of which experts are this rank's tokens, and which
 * rows came to this rank's experts. It is used by one call at a time, and stays as it is until the next
 * dispatch with experts of its own.
 */
public final class ExpertRouting implements AutoCloseable {
  private final ExpertParallel experts;
  private final Window window;
  private final int number;
  private final DistributedTensor table;
  private final IntBuffer nativeStarts;
  private final IntBuffer nativeCounts;

  /** Of each of this rank's experts; as the last dispatch that succeeded left them. */
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

  /** How many rows the last dispatch brought to this rank's expert {@code expert}, from 0 there. */
  public int count(int expert) {
    return counts[checked(expert)];
  }

  /** The first of those rows, a multiple of the options' alignment. */
  public int start(int expert) {
    return starts[checked(expert)];
  }

  /** Those rows: [{@link #count}, hidden] of {@link ExpertParallel#rows}. */
  public DistributedTensor rows(int expert) {
    return experts.rows().narrow(0, start(expert), count(expert));
  }

  /** How many rows the last dispatch brought to all of this rank's experts. */
  public long received() {
    long sum = 0;
    for (int count : counts) {
      sum += count;
    }
    return sum;
  }

  private int checked(int expert) {
    if (expert < 0 || expert >= counts.length) {
      throw new InvalidArgumentException(
          "expert is " + expert + "; this rank's are 0 to " + (counts.length - 1));
    }
    return expert;
  }

  /** Whether it is one of the experts that have their rows in that window. */
  boolean isOf(Window rows) {
    return experts.rows().window() == rows;
  }

  /** Among those of the communicator, alike on all ranks. */
  int number() {
    return number;
  }

  /** The memory of the native table. */
  DistributedTensor table() {
    return table;
  }

  /** Forgets the last dispatch. */
  void clear() {
    Arrays.fill(starts, 0);
    Arrays.fill(counts, 0);
  }

  /** Takes over what a dispatch has found, while its memory is pinned. */
  void update() {
    nativeStarts.get(0, starts);
    nativeCounts.get(0, counts);
  }

  /** Ends its use on this rank. Idempotent. */
  @Override
  public void close() {
    window.close();
  }
}
