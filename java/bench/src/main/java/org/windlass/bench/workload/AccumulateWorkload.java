// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Floor;
import org.windlass.bench.data.Sums;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;

/**
 * An accumulation into one tensor: every rank adds {@code bytes} bytes of its own to the same
 * tensor in rank 0's window and notifies rank 0. All ranks add at the same time, and rank 0 waits
 * for all of them. In a stream, a different rank owns the tensor in each operation, in turn.
 *
 * @param plain whether added tensors lie in the rank's own memory; the target is a window
 */
public record AccumulateWorkload(int ranks, long bytes, DType dtype, boolean plain)
    implements Workload {

  public AccumulateWorkload {
    Buffers.requireAddressable("--bytes", 2 * bytes);
    if (!new Sums(dtype, ranks).areExact()) {
      throw new UnsupportedException(
          "bench accumulate: sums of " + ranks + " terms in " + dtype
              + " depend on their order, which a bench can't verify; take fewer ranks or a wider"
              + " dtype");
    }
  }

  @Override
  public RankWork open(Communicator comm) {
    return new OneSidedWork(comm, bytes, dtype, plain) {
      private final Sums terms = new Sums(dtype, ranks);

      /** For each rank, the number of operations so far in which it owned the target. */
      private final int[] turns = new int[ranks];

      @Override
      public void rewrite(long iteration) {
        terms.rewrite(Buffers.bytesOf(own), rank, iteration);
        if (rank == 0) {
          reached.fill(0);
        }
      }

      @Override
      public void stream(int index) {
        int owner = index % ranks;
        turns[owner]++;
        window.accumulate(own, owner, reached);
        signals.notify(owner, 0, turns[owner]);
        for (int peer = 0; rank == owner && peer < ranks; peer++) {
          signals.await(peer, 0, turns[owner]);
        }
      }

      @Override
      public void verify(long iteration) {
        int at = rank == 0 ? terms.mismatch(Buffers.bytesOf(reached), 0, iteration) : -1;
        if (at >= 0) {
          throw new VerificationFailedException(
              "accumulate: rank 0's tensor differs at element " + at
                  + " from the sum over all ranks in iteration " + iteration);
        }
      }
    };
  }

  @Override
  public long receivedBytes() {
    return (ranks - 1) * bytes;
  }

  /** Returns the time to read each term, and to read and write the target for each term. */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.copyMicros(ranks * bytes, dtype, dtype, iterations));
  }
}
