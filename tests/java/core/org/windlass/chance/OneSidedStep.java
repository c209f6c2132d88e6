// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;

/** A one-sided operation of a random program on one rank, and what plain Java says it gives. */
record OneSidedStep(Step step, Communicator comm) {
  /** A put to the right, and a wait for that from the left. */
  void put() {
    DType dtype = step.dtype();
    int count = step.count();
    int right = (comm.rank() + 1) % comm.size();
    int left = (comm.rank() + comm.size() - 1) % comm.size();
    long bytes = 2 * (dtype.bytesOf(count) + 64) + Signals.bytes(1, comm.size());
    try (Window window = comm.window(bytes)) {
      Signals signals = window.signals(1);
      DistributedTensor inbox = window.tensor(dtype, count);
      Tensor row = step.plain() ? Tensor.allocate(dtype, count) : window.tensor(dtype, count);
      Step.write(row, i -> step.value(comm.rank(), i));
      window.put(row, right, inbox);
      signals.notify(right, 0, 1);
      signals.await(left, 0, 1);
      step.check(comm, inbox, i -> step.value(left, i));
      comm.barrier();
    }
  }

  /** A sum of all ranks in one place. */
  void accumulate() {
    int owner = step.root() % comm.size();
    DType summed = step.dtype() == DType.F64 ? DType.F32 : step.dtype();
    try (Window window = comm.window(summed.bytesOf(step.count()) + 64)) {
      DistributedTensor sums = window.tensor(summed, step.count());
      Tensor row = Tensor.allocate(summed, step.count());
      Step.write(row, i -> step.value(comm.rank(), i));
      window.accumulate(row, owner, sums);
      comm.barrier();
      step.check(
          comm,
          sums,
          i ->
              comm.rank() != owner
                  ? 0
                  : IntStream.range(0, comm.size()).mapToDouble(r -> step.value(r, i)).sum());
    }
  }
}
