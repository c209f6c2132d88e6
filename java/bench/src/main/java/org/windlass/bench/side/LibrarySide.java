// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.util.function.IntConsumer;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.bench.data.Buffers;

/**
 * Runs the library's own collectives.
 *
 * @param plain whether tensors are in each rank's own memory instead of a window
 */
public record LibrarySide(Algorithm algorithm, boolean plain) implements Side {
  @Override
  public Runnable barrier(Communicator comm) {
    return comm::barrier;
  }

  @Override
  public Side.Rank open(Communicator comm, Operation operation, long bytes, DType dtype) {
    int ranks = comm.size();
    long count = bytes / dtype.bytes();
    boolean inPlace = operation == Operation.BROADCAST;
    Buffers buffers =
        new Buffers(
            comm,
            plain,
            operation.inputBytes(ranks, bytes),
            inPlace ? 0 : operation.outputBytes(ranks, bytes));
    Tensor in = buffers.tensor(dtype, operation.inputShape(ranks, count));
    Tensor out = inPlace ? in : buffers.tensor(dtype, operation.outputShape(ranks, count));
    return new OnHost(
        Buffers.bytesOf(in),
        Buffers.bytesOf(out),
        call(comm, operation, in, out, algorithm),
        buffers::close);
  }

  /** Returns a function that runs the operation on these tensors. Its argument is the root. */
  static IntConsumer call(
      Communicator comm, Operation operation, Tensor in, Tensor out, Algorithm algorithm) {
    return switch (operation) {
      case ALL_TO_ALL -> root -> comm.allToAll(in, out, algorithm);
      case BROADCAST -> root -> comm.broadcast(in, out, root, algorithm);
      case ALL_GATHER -> root -> comm.allGather(in, out);
      case REDUCE_SCATTER -> root -> comm.reduceScatter(in, out, ReduceOp.SUM);
      case ALL_REDUCE -> root -> comm.allReduce(in, out, ReduceOp.SUM, algorithm);
    };
  }
}
