// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/** Reduces the terms of Partial tensors in the same order and precision as the collectives. */
final class Folds {
  private Folds() {}

  /**
   * Reduces a tensor along its first dimension.
   *
   * @param target receives the result, in the dtype of {@code terms}
   * @param terms the tensor; index i of its first dimension is term i
   */
  static void fold(Tensor target, Tensor terms, ReduceOp op) {
    int count = (int) terms.size(0);
    int size = (Structs.Tensor.SIZE + 7) & ~7;
    ByteBuffer described = Structs.allocate(count * (size + Long.BYTES));
    long address = NativeMemory.address(described);
    long apart = terms.strides()[0] * terms.dtype().bytes();
    try (Scratch scratch = Scratch.take()) {
      long first = describe(scratch, 0, terms.select(0, 0));
      ByteBuffer model = NativeMemory.buffer(first, Structs.Tensor.SIZE);
      for (int term = 0; term < count; term++) {
        described.put(term * size, model, 0, Structs.Tensor.SIZE);
        described.putLong(term * size + Structs.Tensor.DATA, terms.address() + term * apart);
        described.putLong(count * size + term * Long.BYTES, address + (long) term * size);
      }
      long sources = address + (long) count * size;
      Failures.check(
          Native.wl_tensor_fold(
              describe(scratch, 1, target), sources, count, op.code(), scratch.error()),
          scratch);
    } finally {
      Reference.reachabilityFence(target);
      Reference.reachabilityFence(terms);
      Reference.reachabilityFence(described);
    }
  }

  private static long describe(Scratch scratch, int slot, Tensor tensor) {
    return scratch.tensor(
        slot, tensor.dtype().code(), tensor.address(), tensor.shape(), tensor.strides());
  }
}
