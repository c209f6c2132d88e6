// SPDX-License-Identifier: Apache-2.0
package org.windlass.consumer;

import java.nio.file.Path;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;

/**
 * Ranks shift what they hold by a kernel of a library: {@code RingShift LIBRARY}. They are threads, or
 * the processes that a launcher started.
 */
public final class RingShift {
  private static final int RANKS = 4;

  private RingShift() {}

  public static void main(String[] arguments) {
    KernelLibrary library = KernelLibrary.load(Path.of(arguments[0]), Target.loaded());
    Kernel shift = library.kernel("ring_shift");
    if (System.getenv("RANK") != null) {
      try (Communicator comm = Communicator.fromEnvironment()) {
        run(comm, shift);
      }
    } else {
      try (var group = LocalGroup.of(RANKS)) {
        group.run(comm -> run(comm, shift));
      }
    }
    System.out.println("shifted");
  }

  private static void run(Communicator comm, Kernel shift) {
    for (long count : new long[] {1, 5000, 100_000}) {
      try (var window = comm.window(count * 4);
          Tensor in = Tensor.allocate(DType.F32, count)) {
        var out = window.tensor(DType.F32, count);
        for (int steps = 0; steps <= comm.size(); steps++) {
          in.fill(10 * comm.rank() + steps);
          comm.launch(shift, in, out, steps);
          int from = Math.floorMod(comm.rank() - steps, comm.size());
          for (long i : new long[] {0, count / 2, count - 1}) {
            if (out.getDouble(i) != 10 * from + steps) {
              throw new AssertionError(
                  "rank " + comm.rank() + " got " + out.getDouble(i) + " at " + i + " from " + from);
            }
          }
        }
      }
    }
  }
}
