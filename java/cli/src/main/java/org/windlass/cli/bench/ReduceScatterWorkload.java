// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.internal.Floor;

/** Reduce-scatter of sums, {@code bytes} to each rank. */
final class ReduceScatterWorkload implements Workload {
  private final int ranks;
  private final long bytes;
  private final DType dtype;
  private final boolean plain;
  private final Sums sums;

  ReduceScatterWorkload(int ranks, long bytes, DType dtype, boolean plain) {
    Buffers.requireAddressable(Math.multiplyExact(ranks, bytes));
    this.ranks = ranks;
    this.bytes = bytes;
    this.dtype = dtype;
    this.plain = plain;
    this.sums = new Sums(dtype, ranks);
  }

  @Override
  public RankWork open(Communicator comm) {
    Buffers buffers = new Buffers(comm, plain, ranks * bytes, bytes);
    long count = bytes / dtype.bytes();
    return new Work(
        comm, buffers, buffers.tensor(dtype, ranks, count), buffers.tensor(dtype, count));
  }

  private final class Work implements RankWork {
    private final Communicator comm;
    private final Buffers buffers;
    private final Tensor in;
    private final Tensor out;
    private final ByteBuffer input;

    Work(Communicator comm, Buffers buffers, Tensor in, Tensor out) {
      this.comm = comm;
      this.buffers = buffers;
      this.in = in;
      this.out = out;
      this.input = Buffers.bytesOf(in);
    }

    @Override
    public void rewrite(long iteration) {
      sums.rewrite(input, comm.rank(), iteration);
    }

    @Override
    public void call() {
      comm.reduceScatter(in, out, ReduceOp.SUM);
    }

    @Override
    public void verify(long iteration) {
      ReduceScatterWorkload.this.verify(Buffers.bytesOf(out), comm.rank(), iteration);
    }

    @Override
    public void close() {
      buffers.close();
    }
  }

  /** Checks the output of {@code rank}: its part of the sums. */
  void verify(ByteBuffer out, int rank, long iteration) {
    int at = sums.mismatch(out, rank * (bytes / dtype.bytes()), iteration);
    if (at >= 0) {
      throw new VerificationFailedException(
          "reduce-scatter: rank "
              + rank
              + "'s output differs at element "
              + at
              + " in iteration "
              + iteration);
    }
  }

  @Override
  public int ranks() {
    return ranks;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public long receivedBytes() {
    return (ranks - 1) * bytes;
  }

  /** Empty but for f32: the floor sums f32. */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    return dtype == DType.F32
        ? OptionalDouble.of(Floor.reduceScatterMicros(ranks, bytes, iterations))
        : OptionalDouble.empty();
  }
}
