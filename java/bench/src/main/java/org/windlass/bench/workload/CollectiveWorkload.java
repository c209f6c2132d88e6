// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Pattern;
import org.windlass.bench.data.Sums;
import org.windlass.bench.side.Operation;
import org.windlass.bench.side.Side;
import org.windlass.error.VerificationFailedException;

/** A collective of one {@link Side}, on rows of {@code bytes} bytes. */
public record CollectiveWorkload(
    Side side, Operation operation, int ranks, long bytes, DType dtype) implements Workload {
  public CollectiveWorkload {
    Buffers.requireAddressable("--bytes", operation.inputBytes(ranks, bytes));
    Buffers.requireAddressable("--bytes", operation.outputBytes(ranks, bytes));
    if (operation.sums()) {
      Sums.require(dtype);
    }
  }

  private @Nullable Sums sums() {
    return operation.sums() ? new Sums(dtype, ranks) : null;
  }

  @Override
  public RankWork open(Communicator comm) {
    int rank = comm.rank();
    Side.Rank calls = side.open(comm, operation, bytes, dtype);
    ByteBuffer input = calls.input();
    ByteBuffer output = calls.output();
    Pattern pattern = new Pattern(rank, input);
    Sums sums = sums();
    return new RankWork() {
      @Override
      public void rewrite(long iteration) {
        if (sums != null) {
          sums.rewrite(input, rank, iteration);
        } else if (operation != Operation.BROADCAST || rank == Operation.ROOT) {
          pattern.rewrite(iteration);
        }
        calls.bring();
      }

      @Override
      public void copy() {
        calls.copy();
      }

      @Override
      public void call() {
        calls.call(Operation.ROOT);
      }

      @Override
      public void stream(int index) {
        calls.call(index % ranks);
      }

      @Override
      public void verify(long iteration) {
        calls.fetch();
        CollectiveWorkload.this.verify(output, rank, iteration);
      }

      @Override
      public void close() {
        calls.close();
      }
    };
  }

  /** Checks the output of {@code rank}. The exception's message names the first wrong element. */
  public void verify(ByteBuffer output, int rank, long iteration) {
    Sums sums = sums();
    if (sums != null) {
      long first = operation == Operation.REDUCE_SCATTER ? rank * (bytes / dtype.bytes()) : 0;
      int element = sums.mismatch(output, first, iteration);
      if (element >= 0) {
        throw difference(rank, "element " + element, iteration);
      }
      return;
    }
    long position = operation == Operation.ALL_TO_ALL ? rank * bytes : 0;
    for (int start = 0; start < output.limit(); start += (int) bytes) {
      int source = operation == Operation.BROADCAST ? Operation.ROOT : start / (int) bytes;
      int at = Pattern.mismatch(output, start, (int) bytes, source, position, iteration);
      if (at >= 0) {
        throw difference(rank, "byte " + at + ", which is rank " + source + "'s,", iteration);
      }
    }
  }

  private VerificationFailedException difference(int rank, String where, long iteration) {
    return new VerificationFailedException(
        operation + ": rank " + rank + "'s output differs at " + where + " in iteration "
            + iteration);
  }

  @Override
  public boolean isOnDevices() {
    return side.isOnDevices();
  }

  @Override
  public long receivedBytes() {
    return operation.receivedBytes(ranks, bytes);
  }

  /** Returns empty for sums whose dtype is not f32, since the floor adds f32. */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    return !operation.sums() || dtype == DType.F32
        ? OptionalDouble.of(operation.floorMicros(ranks, bytes, iterations))
        : OptionalDouble.empty();
  }
}
