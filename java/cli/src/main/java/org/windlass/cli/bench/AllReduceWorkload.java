// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;
import org.windlass.VerificationFailedException;
import org.windlass.internal.Floor;

/** All-reduce of sums of a buffer of {@code bytes}, from one tensor into another. */
final class AllReduceWorkload implements Workload {
  private final int ranks;
  private final long bytes;
  private final DType dtype;
  private final Algorithm algorithm;
  private final boolean plain;
  private final Sums sums;

  /**
   * @throws UnsupportedException if elements have no sum, or a ring's order would show in it
   */
  AllReduceWorkload(int ranks, long bytes, DType dtype, Algorithm algorithm, boolean plain) {
    Buffers.requireAddressable(bytes);
    this.ranks = ranks;
    this.bytes = bytes;
    this.dtype = dtype;
    this.algorithm = algorithm;
    this.plain = plain;
    this.sums = new Sums(dtype, ranks);
    boolean ring = algorithm == Algorithm.RING || algorithm == Algorithm.BIDIRECTIONAL_RING;
    if (ring && !Sums.areExact(dtype, ranks)) {
      throw new UnsupportedException(
          "bench all-reduce: a "
              + algorithm
              + " of "
              + ranks
              + " ranks rounds sums of "
              + dtype
              + " on the way, which a bench can't verify; take fewer ranks or a wider dtype");
    }
  }

  @Override
  public RankWork open(Communicator comm) {
    Buffers buffers = new Buffers(comm, plain, bytes, bytes);
    long count = bytes / dtype.bytes();
    return new Work(comm, buffers, buffers.tensor(dtype, count), buffers.tensor(dtype, count));
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
      comm.allReduce(in, out, ReduceOp.SUM, algorithm);
    }

    @Override
    public void verify(long iteration) {
      AllReduceWorkload.this.verify(Buffers.bytesOf(out), comm.rank(), iteration);
    }

    @Override
    public void close() {
      buffers.close();
    }
  }

  /** Checks the output of {@code rank}: the sums, as on every rank. */
  void verify(ByteBuffer out, int rank, long iteration) {
    int at = sums.mismatch(out, 0, iteration);
    if (at >= 0) {
      throw new VerificationFailedException(
          "all-reduce: rank "
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

  /**
   * What ranks that share the sums evenly receive, by whatever algorithm: terms of a rank's share,
   * and the shares of the others.
   */
  @Override
  public long receivedBytes() {
    return 2 * (ranks - 1) * bytes / ranks;
  }

  /** Empty but for f32: the floor sums f32. */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    return dtype == DType.F32
        ? OptionalDouble.of(Floor.allReduceMicros(ranks, bytes, iterations))
        : OptionalDouble.empty();
  }
}
