// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.internal.Floor;

/**
 * Broadcast of {@code bytes} in place: from rank 0 in samples, from each rank in turn in a stream.
 */
record BroadcastWorkload(int ranks, long bytes, DType dtype, Algorithm algorithm, boolean plain)
    implements Workload {
  private static final int ROOT = 0;

  BroadcastWorkload {
    Buffers.requireAddressable(bytes);
  }

  @Override
  public RankWork open(Communicator comm) {
    Buffers buffers = new Buffers(comm, plain, bytes);
    return new Work(comm, buffers, buffers.tensor(dtype, bytes / dtype.bytes()));
  }

  private final class Work implements RankWork {
    private final Communicator comm;
    private final Buffers buffers;
    private final Tensor inOut;
    private final Pattern pattern;

    Work(Communicator comm, Buffers buffers, Tensor inOut) {
      this.comm = comm;
      this.buffers = buffers;
      this.inOut = inOut;
      this.pattern = new Pattern(ROOT, Buffers.bytesOf(inOut));
    }

    @Override
    public void rewrite(long iteration) {
      if (comm.rank() == ROOT) {
        pattern.rewrite(iteration);
      }
    }

    @Override
    public void call() {
      comm.broadcast(inOut, inOut, ROOT, algorithm);
    }

    @Override
    public void stream(int index) {
      comm.broadcast(inOut, inOut, index % ranks, algorithm);
    }

    @Override
    public void verify(long iteration) {
      BroadcastWorkload.verify(Buffers.bytesOf(inOut), comm.rank(), (int) bytes, iteration);
    }

    @Override
    public void close() {
      buffers.close();
    }
  }

  /** Checks what {@code rank} holds: the root's bytes. */
  static void verify(ByteBuffer out, int rank, int bytes, long iteration) {
    int at = Pattern.mismatch(out, 0, bytes, ROOT, 0, iteration);
    if (at >= 0) {
      throw new VerificationFailedException(
          "broadcast: rank "
              + rank
              + "'s buffer differs at byte "
              + at
              + " from what rank "
              + ROOT
              + " sent in iteration "
              + iteration);
    }
  }

  @Override
  public long receivedBytes() {
    return ranks == 1 ? 0 : bytes;
  }

  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.broadcastMicros(ranks, bytes, iterations));
  }
}
