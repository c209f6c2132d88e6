// SPDX-License-Identifier: Apache-2.0
package org.windlass.kernel;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;

/**
 * A library of kernels for {@link org.windlass.Communicator#launch}. Its author built it for one
 * target, with CMake's {@code windlass_add_kernel}. Its code stays loaded until the process ends.
 * If ranks are in several processes, each process loads the same file.
 */
public final class KernelLibrary {
  private final Path path;
  private final Target target;
  private final List<Kernel> kernels;

  private final long handle;

  private KernelLibrary(Path path, Target target, long handle) {
    this.path = path;
    this.target = target;
    this.handle = handle;
    List<Kernel> all = new ArrayList<>();
    for (int i = 0; i < Native.wl_kernel_count(handle); i++) {
      all.add(
          new Kernel(
              this, i, Native.wl_kernel_name(handle, i), Native.wl_kernel_signature(handle, i)));
    }
    this.kernels = List.copyOf(all);
  }

  /**
   * Loads the library at {@code path}. The file, its machine type and the table of its kernels are
   * checked before any of its code runs.
   *
   * @param target the target for which the library was built; it must be this process's target
   * @throws InvalidArgumentException if there is no such file, or it is no library of kernels
   * @throws UnsupportedException if it was built for another target, machine or version of Windlass
   */
  public static KernelLibrary load(Path path, Target target) {
    Path file = Objects.requireNonNull(path, "path").toAbsolutePath();
    Objects.requireNonNull(target, "target");
    byte[] name = NativeMemory.utf8(file.toString());
    byte[] built = NativeMemory.utf8(target.toString());
    long handle =
        Natives.call((out, error) -> Native.wl_kernel_library_load(name, built, out, error));
    return new KernelLibrary(file, target, handle);
  }

  /** Returns the kernels in the library's order. */
  public List<Kernel> kernels() {
    return kernels;
  }

  /**
   * Returns the kernel with this name.
   *
   * @throws InvalidArgumentException if there is no such kernel; the message lists the library's
   *     kernels
   */
  public Kernel kernel(String name) {
    Objects.requireNonNull(name, "name");
    for (Kernel kernel : kernels) {
      if (kernel.name().equals(name)) {
        return kernel;
      }
    }
    throw new InvalidArgumentException(
        "kernel: " + this + " has no \"" + name + "\"; it has " + kernels);
  }

  /**
   * Returns the {@code wl_kernel_library_t*}. For packages of Windlass.
   *
   * @hidden
   */
  public long handle() {
    return handle;
  }

  /** Returns the path from which the library was loaded. */
  public Path path() {
    return path;
  }

  /** Returns the target for which the library was built. */
  public Target target() {
    return target;
  }

  /** Returns a text such as {@code library /opt/libshift-sim.so}. */
  @Override
  public String toString() {
    return "library " + path;
  }
}
