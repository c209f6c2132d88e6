// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Floor;
import org.windlass.bench.data.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.VerificationFailedException;

/**
 * Messages between pairs of neighbours, in both directions, all pairs at the same time. Rank 2k
 * sends {@code bytes} bytes to rank 2k + 1, which sends them back once it has received them. A rank
 * without a neighbour does nothing.
 *
 * @param plain whether the tensors lie in the rank's own memory, not in a window
 */
public record SendReceiveWorkload(int ranks, long bytes, DType dtype, boolean plain)
    implements Workload {
  private static final int TAG = 0;

  public SendReceiveWorkload {
    Buffers.requireAddressable("--bytes", 2 * bytes);
    if (ranks < 2) {
      throw new InvalidArgumentException("--ranks: " + ranks + "; a message takes at least 2");
    }
  }

  @Override
  public RankWork open(Communicator comm) {
    return new OneSidedWork(comm, bytes, dtype, plain) {
      private final int peer = rank ^ 1;
      private final Pattern pattern = new Pattern(rank, Buffers.bytesOf(own));

      @Override
      public void rewrite(long iteration) {
        if (rank % 2 == 0) {
          pattern.rewrite(iteration);
        }
      }

      @Override
      public void stream(int index) {
        if (peer == ranks) {
          return;
        }
        if (rank % 2 == 0) {
          comm.send(own, peer, TAG);
          comm.receive(reached, peer, TAG);
        } else {
          comm.receive(reached, peer, TAG);
          comm.send(reached, peer, TAG);
        }
      }

      @Override
      public void verify(long iteration) {
        if (peer == ranks) {
          return;
        }
        int sender = rank - rank % 2;
        int at =
            Pattern.mismatch(Buffers.bytesOf(reached), 0, (int) bytes, sender, 0, iteration);
        if (at >= 0) {
          throw new VerificationFailedException(
              "send-receive: rank " + rank + "'s message differs at byte " + at + " from what rank "
                  + sender + " sent in iteration " + iteration);
        }
      }
    };
  }

  @Override
  public long receivedBytes() {
    return bytes;
  }

  /** Returns the floor for both messages of each pair. */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.copyMicros(ranks / 2 * 2 * bytes, dtype, dtype, iterations));
  }
}
