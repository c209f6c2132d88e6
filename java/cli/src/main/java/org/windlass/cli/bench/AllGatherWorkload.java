// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.internal.Floor;

/** All-gather of {@code bytes} from each rank. */
record AllGatherWorkload(int ranks, long bytes, DType dtype, boolean plain) implements Workload {

  AllGatherWorkload {
    Buffers.requireAddressable(Math.multiplyExact(ranks, bytes));
  }

  @Override
  public RankWork open(Communicator comm) {
    Buffers buffers = new Buffers(comm, plain, bytes, ranks * bytes);
    long count = bytes / dtype.bytes();
    return new Work(
        comm, buffers, buffers.tensor(dtype, count), buffers.tensor(dtype, ranks, count));
  }

  private final class Work implements RankWork {
    private final Communicator comm;
    private final Buffers buffers;
    private final Tensor in;
    private final Tensor out;
    private final Pattern pattern;

    Work(Communicator comm, Buffers buffers, Tensor in, Tensor out) {
      this.comm = comm;
      this.buffers = buffers;
      this.in = in;
      this.out = out;
      this.pattern = new Pattern(comm.rank(), Buffers.bytesOf(in));
    }

    @Override
    public void rewrite(long iteration) {
      pattern.rewrite(iteration);
    }

    @Override
    public void call() {
      comm.allGather(in, out);
    }

    @Override
    public void verify(long iteration) {
      AllGatherWorkload.verify(Buffers.bytesOf(out), comm.rank(), ranks, (int) bytes, iteration);
    }

    @Override
    public void close() {
      buffers.close();
    }
  }

  /** Checks the output of {@code rank}: the bytes of each source, in the order of ranks. */
  static void verify(ByteBuffer out, int rank, int ranks, int bytes, long iteration) {
    for (int source = 0; source < ranks; source++) {
      int at = Pattern.mismatch(out, source * bytes, bytes, source, 0, iteration);
      if (at >= 0) {
        throw new VerificationFailedException(
            "all-gather: rank "
                + rank
                + "'s output differs at byte "
                + at
                + " from what rank "
                + source
                + " had in iteration "
                + iteration);
      }
    }
  }

  @Override
  public long receivedBytes() {
    return (ranks - 1) * bytes;
  }

  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.allGatherMicros(ranks, bytes, iterations));
  }
}
