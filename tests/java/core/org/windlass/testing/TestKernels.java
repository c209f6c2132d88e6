// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.nio.file.Path;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;

/** The library of {@code tests/kernels}, which each process of a test loads for itself. */
public final class TestKernels {
  /** Where the build puts it, for target sim. */
  public static final Path FILE = file("test_kernels", Target.SIM);

  private TestKernels() {}

  /** Its kernel of that name. */
  public static Kernel kernel(String name) {
    return KernelLibrary.load(FILE, Target.SIM).kernel(name);
  }

  /** A kernel of a library of {@code tests/kernels}, for the target that this process runs. */
  public static Kernel kernel(String library, String name) {
    Target target = Target.loaded();
    return KernelLibrary.load(file(library, target), target).kernel(name);
  }

  private static Path file(String library, Target target) {
    return Path.of(
        System.getProperty("windlass.root"),
        "java/core/target/cmake/sim/tests/kernels/libwindlass_" + library + "-" + target + ".so");
  }
}
