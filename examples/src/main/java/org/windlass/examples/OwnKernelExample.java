// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;

/**
 * Shows a custom kernel: a ring shift in C++, {@code examples/kernels/ring_shift.cpp}. CMake builds
 * it into a library for each target. Every rank launches it, and sends its data to the rank a given
 * number of steps further. docs/how-to/write-a-kernel.md explains the example.
 */
public final class OwnKernelExample {
  /** Number of elements. The kernel moves fewer than these through its two tiles at once. */
  private static final int COUNT = 10_000;

  private OwnKernelExample() {}

  public static void main(String[] args) {
    Examples.main(OwnKernelExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    Target target = Target.loaded();
    KernelLibrary library = KernelLibrary.load(library(target), target);
    Kernel shift = library.kernel("ring_shift");
    group.run(
        comm -> {
          try (var window = comm.window(COUNT * (long) Float.BYTES);
              var in = Tensor.allocate(DType.F32, COUNT)) {
            var arrived = window.tensor(DType.F32, COUNT);
            Golden.fill(in, i -> value(comm.rank(), i));
            for (int steps = 0; steps <= ranks; steps++) {
              comm.launch(shift, in, arrived, steps);

              int from = Math.floorMod(comm.rank() - steps, ranks);
              Golden.check(arrived, i -> value(from, i));
            }
          }
        });
    out.printf(
        "own-kernel: %s by 0 to %d of %d ranks, %d values each equal the golden ones%n",
        shift.name(), ranks, ranks, COUNT);
  }

  /** Returns the library for a target. The build puts it in the folder of the examples' jar. */
  static Path library(Target target) {
    Path here;
    try {
      here = Path.of(OwnKernelExample.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
    Path library = here.resolveSibling("libring_shift-" + target + ".so");
    if (!Files.exists(library)) {
      throw new UnsupportedException(
          "own-kernel: there is no " + library + ": build examples/kernels for " + target
              + " as docs/how-to/write-a-kernel.md says, and put the library there; scripts/windlass"
              + " does so for sim, a2a3sim and a5sim, and for cuda where CMake finds nvcc");
    }
    return library;
  }

  private static float value(int rank, int i) {
    return rank * COUNT + i;
  }
}
