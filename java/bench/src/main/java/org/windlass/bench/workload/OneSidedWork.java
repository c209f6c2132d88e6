// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;

/**
 * One rank's part of a one-sided operation: the tensor that it sends, a tensor that peers write to,
 * and signals.
 */
abstract class OneSidedWork implements Workload.RankWork {
  final int rank;
  final Window window;
  final Signals signals;

  final Tensor own;

  final DistributedTensor reached;

  /**
   * Allocates the tensors. The call is collective.
   *
   * @param bytes size of each tensor
   * @param plain whether the sent tensor lies in the rank's own memory; the target is a window
   */
  OneSidedWork(Communicator comm, long bytes, DType dtype, boolean plain) {
    long count = bytes / dtype.bytes();
    rank = comm.rank();
    window = comm.window(2 * (bytes + 64) + Signals.bytes(1, comm.size()));
    signals = window.signals(1);
    reached = window.tensor(dtype, count);
    own = plain ? Tensor.allocate(dtype, count) : window.tensor(dtype, count);
  }

  @Override
  public final void call() {
    stream(0);
  }

  @Override
  public abstract void stream(int index);

  @Override
  public final void close() {
    window.close();
    own.close();
  }
}
