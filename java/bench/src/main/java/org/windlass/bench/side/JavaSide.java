// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import java.util.function.IntConsumer;
import org.windlass.Communicator;
import org.windlass.DType;

/**
 * Runs the collectives on f32 in plain Java: threads, direct buffers, bulk copies, and loops over
 * {@code float[]} that the compiler vectorises. Small inputs go through staging buffers, and larger
 * ones move directly.
 */
public final class JavaSide implements Side {
  /** Largest input, in bytes, for which a second copy costs less than a second barrier. */
  private static final long STAGED_BYTES = 8 << 10;

  private static final long STAGED_BYTES_BEYOND_CORES = 64 << 10;

  private final int ranks;
  private final boolean coreForEach;
  private final SpinBarrier barrier;
  private final ByteBuffer[] inputs;
  private final ByteBuffer[] outputs;
  private final StagedCalls staged;

  /** Creates the side for {@code ranks} threads that share {@code cores} cores. */
  public JavaSide(int ranks, int cores) {
    this.ranks = ranks;
    this.coreForEach = ranks <= cores;
    this.barrier = new SpinBarrier(ranks, coreForEach);
    this.inputs = new ByteBuffer[ranks];
    this.outputs = new ByteBuffer[ranks];
    this.staged = new StagedCalls(ranks, coreForEach, barrier);
  }

  @Override
  public Runnable barrier(Communicator comm) {
    int rank = comm.rank();
    return () -> barrier.await(rank);
  }

  @Override
  public Rank open(Communicator comm, Operation operation, long bytes, DType dtype) {
    int rank = comm.rank();
    long inputBytes = operation.inputBytes(ranks, bytes);
    inputs[rank] = direct(inputBytes);
    outputs[rank] =
        operation == Operation.BROADCAST
            ? inputs[rank]
            : direct(operation.outputBytes(ranks, bytes));
    long limit = coreForEach ? STAGED_BYTES : STAGED_BYTES_BEYOND_CORES;
    boolean isStaged = inputBytes <= limit;
    IntConsumer call =
        isStaged ? staged.open(rank, operation, inputs[rank], outputs[rank], (int) bytes) : null;
    barrier.await(rank);
    if (!isStaged) {
      call = new DirectCalls(rank, barrier, inputs, outputs, (int) bytes).of(operation);
    }
    return new OnHost(inputs[rank], outputs[rank], Objects.requireNonNull(call), () -> {});
  }

  private static ByteBuffer direct(long bytes) {
    return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
  }
}
