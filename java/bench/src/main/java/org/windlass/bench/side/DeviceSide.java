// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.bench.data.Buffers;

/**
 * Measures the library's own collectives on tensors in the memory of devices. A rank's buffers are
 * copies on the host. They are transferred to and from the device outside the measured time.
 */
public record DeviceSide(Algorithm algorithm) implements Side {
  private static final long ALIGNMENT = 64;

  @Override
  public Runnable barrier(Communicator comm) {
    return comm::barrier;
  }

  @Override
  public boolean isOnDevices() {
    return true;
  }

  @Override
  public Rank open(Communicator comm, Operation operation, long bytes, DType dtype) {
    int rank = comm.rank();
    int ranks = comm.size();
    long count = bytes / dtype.bytes();
    boolean inPlace = operation == Operation.BROADCAST;
    Window window =
        comm.deviceWindow(
            aligned(operation.inputBytes(ranks, bytes))
                + aligned(operation.outputBytes(ranks, bytes)));
    DistributedTensor in = window.tensor(dtype, operation.inputShape(ranks, count));
    DistributedTensor other = window.tensor(dtype, operation.outputShape(ranks, count));
    DistributedTensor out = inPlace ? in : other;
    Tensor inOnHost = Tensor.allocate(dtype, operation.inputShape(ranks, count));
    Tensor outOnHost =
        inPlace ? inOnHost : Tensor.allocate(dtype, operation.outputShape(ranks, count));
    IntConsumer call = LibrarySide.call(comm, operation, in, out, algorithm);
    // Pairs of tensors to copy for the bytes of the operation.
    List<DistributedTensor[]> copies = new ArrayList<>();
    boolean rowsIn = in.numel() > other.numel();
    boolean rowsOut = in.numel() < other.numel();
    for (int row = 0; row < (rowsIn || rowsOut ? ranks : 1); row++) {
      copies.add(
          new DistributedTensor[] {
            rowsIn ? in.select(0, row) : in, rowsOut ? other.select(0, row) : other
          });
    }
    return new Rank() {
      @Override
      public ByteBuffer input() {
        return Buffers.bytesOf(inOnHost);
      }

      @Override
      public ByteBuffer output() {
        return Buffers.bytesOf(outOnHost);
      }

      @Override
      public void bring() {
        window.put(inOnHost, rank, in);
      }

      @Override
      public void fetch() {
        window.get(outOnHost, rank, out);
      }

      @Override
      public void copy() {
        for (DistributedTensor[] each : copies) {
          window.put(each[0], rank, each[1]);
        }
      }

      @Override
      public void call(int root) {
        call.accept(root);
      }

      @Override
      public void close() {
        window.close();
        inOnHost.close();
        outOnHost.close();
      }
    };
  }

  private static long aligned(long bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
}
