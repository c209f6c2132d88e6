// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Digits;
import org.windlass.bench.data.Floor;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;

/** A cast on every rank, of {@code bytes} source bytes of its own, from one dtype to another. */
public record CastWorkload(int ranks, long bytes, DType from, DType to, boolean plain)
    implements Workload {

  public CastWorkload {
    Buffers.requireAddressable("--bytes", bytes);
    if (!from.canCast(to)) {
      throw new UnsupportedException("no cast from " + from + " to " + to);
    }
  }

  private int count() {
    return (int) (bytes / from.bytes());
  }

  @Override
  public RankWork open(Communicator comm) {
    int rank = comm.rank();
    Buffers buffers = new Buffers(comm, plain, bytes, to.bytesOf(count()));
    Tensor in = buffers.tensor(from, count());
    Tensor out = buffers.tensor(to, count());
    ByteBuffer input = Buffers.bytesOf(in);
    byte[] digits = new byte[count()];
    for (int i = 0; i < digits.length; i++) {
      digits[i] = (byte) Digits.of(i, rank);
    }
    long[] inputBits = Digits.encode(from, ReduceOp.SUM);
    long[] outputBits = Digits.encodeReduced(from, ReduceOp.SUM, 1, to);
    return new RankWork() {
      @Override
      public void rewrite(long iteration) {
        Digits.write(input, digits, inputBits, from.bytes(), iteration);
      }

      @Override
      public void call() {
        out.copyFrom(in);
      }

      @Override
      public void verify(long iteration) {
        int at = Digits.mismatch(Buffers.bytesOf(out), digits, outputBits, to.bytes(), iteration);
        if (at >= 0) {
          throw new VerificationFailedException(
              "cast: rank " + rank + "'s output differs at element " + at + " in iteration "
                  + iteration);
        }
      }

      @Override
      public void close() {
        buffers.close();
      }
    };
  }

  @Override
  public Map<String, Object> details() {
    return Map.of("wire", to);
  }

  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.copyMicros(ranks * bytes, from, to, iterations));
  }
}
