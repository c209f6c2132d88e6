// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Floor;
import org.windlass.bench.data.Pattern;
import org.windlass.error.VerificationFailedException;

/**
 * A ring of messages. Each rank sends {@code bytes} bytes to the next rank, and receives the same
 * number from the rank before it.
 *
 * @param plain whether the sent tensors lie in the rank's own memory, not in a window
 */
public record RingWorkload(int ranks, long bytes, DType dtype, boolean plain)
    implements Workload {
  private static final int TAG = 0;

  public RingWorkload {
    Buffers.requireAddressable("--bytes", 2 * bytes);
  }

  @Override
  public RankWork open(Communicator comm) {
    return new OneSidedWork(comm, bytes, dtype, plain) {
      private final int next = (rank + 1) % ranks;
      private final int previous = (rank + ranks - 1) % ranks;
      private final Pattern pattern = new Pattern(rank, Buffers.bytesOf(own));

      @Override
      public void rewrite(long iteration) {
        pattern.rewrite(iteration);
      }

      @Override
      public void stream(int index) {
        comm.sendReceive(own, next, reached, previous, TAG);
      }

      @Override
      public void verify(long iteration) {
        int at =
            Pattern.mismatch(Buffers.bytesOf(reached), 0, (int) bytes, previous, 0, iteration);
        if (at >= 0) {
          throw new VerificationFailedException(
              "ring: rank " + rank + "'s message differs at byte " + at + " from what rank "
                  + previous + " sent in iteration " + iteration);
        }
      }
    };
  }

  @Override
  public long receivedBytes() {
    return bytes;
  }

  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.copyMicros(ranks * bytes, dtype, dtype, iterations));
  }
}
