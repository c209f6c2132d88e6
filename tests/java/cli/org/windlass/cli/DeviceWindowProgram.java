// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.nio.file.Path;
import java.util.Arrays;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;

/** Ranks that are threads of this process and have windows on GPUs, as a test starts them. */
final class DeviceWindowProgram {
  private static final int RANKS = 3;
  private static final int COUNT = 1000;
  /** Of the core module's build, from the folder of the tests. */
  private static final Path KERNELS =
      Path.of("../core/target/cmake/sim/tests/kernels/libwindlass_test_kernels-cuda.so");

  private DeviceWindowProgram() {}

  public static void main(String[] args) {
    Target.CUDA.use();
    try (LocalGroup group = LocalGroup.of(RANKS)) {
      group.run(DeviceWindowProgram::onRank);
    }
    System.out.println("device windows: " + RANKS + " ranks, all as expected");
  }

  private static void onRank(Communicator comm) {
    int rank = comm.rank();
    int next = (rank + 1) % RANKS;
    int previous = (rank + RANKS - 1) % RANKS;
    try (Window window = comm.deviceWindow(1 << 16);
        Window host = comm.window(1 << 13);
        Tensor values = Tensor.allocate(DType.F32, 2, COUNT)) {
      Signals signals = host.signals(1);
      DistributedTensor inbox = window.tensor(DType.F32, COUNT);
      DistributedTensor sums = window.tensor(DType.F32, COUNT);
      DistributedTensor beside = host.tensor(DType.F32, COUNT);
      require(window.isOnDevice() && inbox.isOnDevice() && !host.isOnDevice(), "where it lies");
      refused(() -> inbox.getDouble(0));
      refused(() -> window.signals(1));

      // A column of a matrix, which is strided on the host and whole on the device.
      for (int i = 0; i < COUNT; i++) {
        values.setDouble(100.0 * rank + i % 7, 0, i);
      }
      Tensor column = values.transpose(0, 1).select(1, 0);
      window.put(column, next, inbox);
      signals.notify(next, 0, 1);
      signals.await(previous, 0, 1);
      expect(window, inbox, 100.0 * previous, 1);

      // The same to a window of the host, and twice as much back.
      host.put(inbox, next, beside);
      comm.barrier();
      int sender = (rank + RANKS - 2) % RANKS;
      require(beside.getDouble(8) == 100.0 * sender + 1, "what came to the host");
      comm.barrier();
      host.accumulate(inbox, next, beside);
      comm.barrier();
      host.get(sums, rank, beside);
      expect(window, sums, 200.0 * sender, 2);
      comm.barrier();
      window.put(Tensor.allocate(DType.F32, COUNT), rank, sums);
      comm.barrier();

      window.accumulate(inbox, 0, sums);
      comm.barrier();
      if (rank == 0) {
        expect(window, sums, 300, 3);
      }
      // A kernel of a library takes them too.
      comm.barrier();
      comm.launch(KernelLibrary.load(KERNELS, Target.CUDA).kernel("shift"), inbox, sums, 1);
      expect(window, sums, 100.0 * Math.floorMod(rank - 2, RANKS), 1);
      comm.allReduce(inbox, inbox, ReduceOp.SUM);
      expect(window, inbox, 300, 3);
      comm.barrier();
    }
  }

  /** Element i of this rank's own is {@code base + times * (i % 7)}. */
  private static void expect(Window window, DistributedTensor own, double base, int times) {
    try (Tensor copy = Tensor.allocate(DType.F32, COUNT)) {
      window.get(copy, window.communicator().rank(), own);
      float[] found = new float[COUNT];
      copy.copyTo(found);
      for (int i = 0; i < COUNT; i++) {
        require(found[i] == base + times * (i % 7), "element " + i + ": " + Arrays.toString(found));
      }
    }
  }

  private static void refused(Runnable call) {
    try {
      call.run();
    } catch (UnsupportedException e) {
      return;
    }
    throw new IllegalStateException("not refused");
  }

  private static void require(boolean holds, String what) {
    if (!holds) {
      throw new IllegalStateException(what);
    }
  }
}
