// SPDX-License-Identifier: Apache-2.0
package org.windlass.kernel;

/** A kernel of a {@link KernelLibrary}. Immutable and thread-safe. */
public final class Kernel {
  private final String name;
  private final String signature;

  private final int index;
  private final KernelLibrary library;

  Kernel(KernelLibrary library, int index, String name, String signature) {
    this.library = library;
    this.index = index;
    this.name = name;
    this.signature = signature;
  }

  /** Returns the kernel's name, without its parameters. */
  public String name() {
    return name;
  }

  /** Returns the library that contains the kernel. */
  public KernelLibrary library() {
    return library;
  }

  /**
   * Returns the index of the kernel in its library. For packages of Windlass.
   *
   * @hidden
   */
  public int index() {
    return index;
  }

  /**
   * Returns the name with the parameters, such as {@code shift(f32 in, distributed written f32 out,
   * scalar i32 steps)}.
   */
  @Override
  public String toString() {
    return signature;
  }
}
