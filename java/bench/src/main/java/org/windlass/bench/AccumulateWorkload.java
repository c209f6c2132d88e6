// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;
import org.windlass.VerificationFailedException;
import org.windlass.Window;

/**
 * Every rank adds {@code bytes} of its own to the same tensor of rank 0's window, all at once, and
 * notifies it; rank 0 waits for all of them. In a stream the owner rotates.
 *
 * @param plain whether what is added lies in memory of the rank's own; where it goes is a window
 */
public record AccumulateWorkload(int ranks, long bytes, DType dtype, boolean plain) implements Workload {

  public AccumulateWorkload {
    Buffers.requireAddressable(2 * bytes);
    if (!new Sums(dtype, ranks).areExact()) {
      throw new UnsupportedException(
          "bench accumulate: sums of "
              + ranks
              + " terms in "
              + dtype
              + " depend on their order, which a bench can't verify; take fewer ranks or a wider"
              + " dtype");
    }
  }

  @Override
  public RankWork open(Communicator comm) {
    Window window = comm.window(2 * (bytes + 64) + Signals.bytes(1, ranks));
    long count = bytes / dtype.bytes();
    Signals signals = window.signals(1);
    DistributedTensor sums = window.tensor(dtype, count);
    Tensor own = plain ? Tensor.allocate(dtype, count) : window.tensor(dtype, count);
    return new Work(comm.rank(), window, signals, own, sums);
  }

  private final class Work implements RankWork {
    private final int rank;
    private final Window window;
    private final Signals signals;
    private final Tensor own;
    private final DistributedTensor sums;
    private final Sums terms = new Sums(dtype, ranks);

    /** Operations so far that each rank owned. */
    private final int[] turns = new int[ranks];

    Work(int rank, Window window, Signals signals, Tensor own, DistributedTensor sums) {
      this.rank = rank;
      this.window = window;
      this.signals = signals;
      this.own = own;
      this.sums = sums;
    }

    @Override
    public void rewrite(long iteration) {
      terms.rewrite(Buffers.bytesOf(own), rank, iteration);
      if (rank == 0) {
        sums.fill(0);
      }
    }

    @Override
    public void call() {
      stream(0);
    }

    @Override
    public void stream(int index) {
      int owner = index % ranks;
      turns[owner]++;
      window.accumulate(own, owner, sums);
      signals.notify(owner, 0, turns[owner]);
      for (int peer = 0; rank == owner && peer < ranks; peer++) {
        signals.await(peer, 0, turns[owner]);
      }
    }

    @Override
    public void verify(long iteration) {
      int at = rank == 0 ? terms.mismatch(Buffers.bytesOf(sums), 0, iteration) : -1;
      if (at >= 0) {
        throw new VerificationFailedException(
            "accumulate: rank 0's tensor differs at element "
                + at
                + " from the sum over all ranks in iteration "
                + iteration);
      }
    }

    @Override
    public void close() {
      window.close();
      own.close();
    }
  }

  @Override
  public long receivedBytes() {
    return (ranks - 1) * bytes;
  }

  /** Each term is read, and the tensor read and written, once for each. */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.copyMicros(ranks * bytes, dtype, dtype, iterations));
  }
}
