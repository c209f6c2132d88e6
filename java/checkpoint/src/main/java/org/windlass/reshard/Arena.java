// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import org.windlass.DType;
import org.windlass.Tensor;

/** Memory that steps use one after another, so that it stays in the caches. */
final class Arena implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private Tensor memory;
  private long used;

  Arena(long bytes) {
    memory = Tensor.allocate(DType.U8, bytes);
  }

  /** What {@link #take} uses for so many bytes. */
  static long rounded(long bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  /** Whether so many rounded bytes are left. */
  boolean fits(long bytes) {
    return bytes <= memory.bytes() - used;
  }

  /** Takes everything back, and makes room for at least so many rounded bytes. */
  void reset(long bytes) {
    used = 0;
    if (!fits(bytes)) {
      memory.close();
      memory = Tensor.allocate(DType.U8, bytes);
    }
  }

  /** Memory that is aligned for any dtype. */
  Tensor take(long bytes) {
    Tensor taken = memory.narrow(0, used, bytes);
    used += rounded(bytes);
    return taken;
  }

  @Override
  public void close() {
    memory.close();
  }
}
