// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.nio.file.Path;
import org.windlass.Kernel;
import org.windlass.KernelLibrary;
import org.windlass.Target;

/** The library of {@code tests/kernels}, which each process of a test loads for itself. */
public final class TestKernels {
  /** Where the build puts it. */
  public static final Path FILE =
      Path.of(
          System.getProperty("windlass.root"),
          "java/core/target/cmake/sim/tests/kernels/libwindlass_test_kernels-sim.so");

  private TestKernels() {}

  /** Its kernel of that name. */
  public static Kernel kernel(String name) {
    return KernelLibrary.load(FILE, Target.SIM).kernel(name);
  }
}
