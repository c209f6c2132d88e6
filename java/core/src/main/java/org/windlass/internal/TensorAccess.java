// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import org.windlass.DType;
import org.windlass.Tensor;

/** Lets other packages of the library make tensors over a {@link Memory} of their own. */
public final class TensorAccess {
  private static volatile Maker maker;

  private TensorAccess() {}

  /**
   * A contiguous tensor at {@code offset} bytes into {@code memory}; aligned to the dtype's size.
   */
  public static Tensor tensor(Memory memory, long offset, DType dtype, long... shape) {
    if (maker == null) {
      try {
        Class.forName(Tensor.class.getName(), true, Tensor.class.getClassLoader());
      } catch (ClassNotFoundException e) {
        throw new AssertionError(e);
      }
    }
    return maker.tensor(memory, offset, dtype, shape);
  }

  /** Called by Tensor's initialiser alone. */
  public static void set(Maker tensorMaker) {
    maker = tensorMaker;
  }

  /** Tensor's constructor, as this package may call it. */
  @FunctionalInterface
  public interface Maker {
    Tensor tensor(Memory memory, long offset, DType dtype, long... shape);
  }
}
