// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Digits;
import org.windlass.bench.data.Floor;
import org.windlass.bench.data.LocalDigits;
import org.windlass.error.VerificationFailedException;
import org.windlass.internal.json.JsonObject;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Route;
import org.windlass.plan.TransferMode;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * A redistribution of a tensor from one layout to another, by a transfer that is registered once
 * and runs many times.
 */
public record RedistributeWorkload(
    TensorSpec from,
    TensorSpec to,
    DType wire,
    TransferMode mode,
    boolean plain,
    Duration deadline)
    implements Workload {
  private static final long FLOOR_BYTES = 512 << 20;

  @Override
  public int ranks() {
    return Math.max(from.layout().mesh().highestRank(), to.layout().mesh().highestRank()) + 1;
  }

  private long[] shape() {
    return from.shape().stream().mapToLong(Long::longValue).toArray();
  }

  private ReduceOp op() {
    return from.layout().partialOp().orElse(ReduceOp.SUM);
  }

  @Override
  public RankWork open(Communicator comm) {
    long largest = 0;
    for (int rank = 0; rank < ranks(); rank++) {
      largest = Math.max(largest, Math.max(bytesOf(from, rank), bytesOf(to, rank)));
    }
    Buffers.requireAddressable("--shape", largest);
    return new Work(comm, new Buffers(comm, plain, largest, largest));
  }

  private long bytesOf(TensorSpec of, int rank) {
    return of.layout().mesh().contains(rank)
        ? of.dtype().bytesOf(of.layout().localRegion(shape(), rank).numel())
        : 0;
  }

  private final class Work implements RankWork {
    private final int rank;
    private final Buffers buffers;
    private final @Nullable Side source;
    private final @Nullable Side target;
    private final Transfer transfer;
    private final long[] inputBits = Digits.encode(from.dtype(), op());
    private long version;

    Work(Communicator comm, Buffers buffers) {
      this.rank = comm.rank();
      this.buffers = buffers;
      this.source = side(from);
      this.target = side(to);
      this.transfer =
          TransferBuilder.of(comm)
              .defaultWire(wire)
              .defaultMode(mode)
              .add(
                  from,
                  source == null ? null : source.tensor(),
                  to,
                  target == null ? null : target.tensor())
              .register(deadline);
    }

    private @Nullable Side side(TensorSpec of) {
      if (!of.layout().mesh().contains(rank)) {
        return null;
      }
      Tensor tensor = buffers.tensor(of.dtype(), of.layout().localShape(shape(), rank));
      return new Side(tensor, Buffers.bytesOf(tensor), LocalDigits.of(of.layout(), shape(), rank));
    }

    @Override
    public void rewrite(long iteration) {
      if (source != null) {
        Digits.write(source.memory(), source.digits(), inputBits, from.dtype().bytes(), iteration);
      }
    }

    @Override
    public void call() {
      transfer.run(++version);
    }

    @Override
    public void verify(long iteration) {
      if (target != null) {
        RedistributeWorkload.this.verify(target.memory(), target.digits(), rank, iteration);
      }
    }

    @Override
    public void close() {
      transfer.close();
      buffers.close();
    }
  }

  /** A rank's local tensor, its memory, and the {@link Digits digit} of each element. */
  private record Side(Tensor tensor, ByteBuffer memory, byte[] digits) {}

  public void verify(ByteBuffer target, byte[] digits, int rank, long iteration) {
    long[] outputBits =
        Digits.encodeReduced(
            from.dtype(), op(), LocalDigits.terms(from.layout()), wire, to.dtype());
    int at = Digits.mismatch(target, digits, outputBits, to.dtype().bytes(), iteration);
    if (at >= 0) {
      throw new VerificationFailedException(
          "redistribute: rank " + rank + "'s target differs at local element " + at
              + " in iteration " + iteration);
    }
  }

  /** Returns the bytes of the global tensor. */
  @Override
  public long bytes() {
    return from.dtype().bytesOf(from.shape().stream().reduce(1L, Math::multiplyExact));
  }

  @Override
  public Map<String, Object> details() {
    return JsonObject.of(
        "from", from.layout(),
        "to", to.layout().qualified(),
        "shape", from.shape().stream().map(String::valueOf).collect(Collectors.joining("x")),
        "wire", wire,
        "mode", mode);
  }

  private Plan plan() {
    PlanOptions options = PlanOptions.defaults();
    return Plan.of(
        from.layout(), to.layout(), shape(), from.dtype(), wire, to.dtype(), options);
  }

  @Override
  public long receivedBytes() {
    long[] received = new long[ranks()];
    for (Route route : plan().routes()) {
      for (int target : route.targets()) {
        long sent = target == route.source() ? 0 : route.bytes();
        received[target] += sent + route.reduceBytes();
      }
    }
    return Arrays.stream(received).max().orElse(0);
  }

  /**
   * Returns the floor in microseconds: contiguous copies or casts with the same traffic. Every
   * target element is written once, and each element is read once from each rank that holds a term
   * of it. If the traffic exceeds {@link #FLOOR_BYTES}, only {@code FLOOR_BYTES} bytes are moved,
   * and the time is scaled up. This is still more than the caches hold.
   */
  @Override
  public OptionalDouble floorMicros(int iterations) {
    DType dtype = from.dtype();
    long elements = bytes() / dtype.bytes();
    long written = 0;
    for (int rank : to.layout().mesh().ranks()) {
      written += to.layout().localRegion(shape(), rank).numel();
    }
    if (elements == 0) {
      return OptionalDouble.empty();
    }
    int copies = (int) (written / elements);
    long each = dtype.bytes() + (long) copies * to.dtype().bytes();
    long measured = Math.min(elements, FLOOR_BYTES / each);
    double micros =
        Floor.copiesMicros(dtype.bytesOf(measured), copies, dtype, to.dtype(), iterations);
    double traffic =
        (double) elements * LocalDigits.terms(from.layout()) * dtype.bytes()
            + (double) written * to.dtype().bytes();
    return OptionalDouble.of(micros * traffic / ((double) measured * each));
  }
}
