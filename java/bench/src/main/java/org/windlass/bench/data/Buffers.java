// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;

/**
 * Provides the memory of a rank's tensors: a window that all ranks share, or the rank's own memory.
 */
public final class Buffers implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private final @Nullable Window window;
  private final List<Tensor> own = new ArrayList<>();

  /**
   * Allocates the memory. The call is collective if tensors lie in a window.
   *
   * @param plain whether tensors lie in the rank's own memory instead of a window
   * @param tensorBytes size of each tensor in bytes, the same on every rank
   */
  public Buffers(Communicator comm, boolean plain, long... tensorBytes) {
    long bytes = 0;
    for (long each : tensorBytes) {
      bytes += (each + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    window = plain ? null : comm.window(Math.max(bytes, ALIGNMENT));
  }

  public Tensor tensor(DType dtype, long... shape) {
    if (window != null) {
      return window.tensor(dtype, shape);
    }
    Tensor tensor = Tensor.allocate(dtype, shape);
    own.add(tensor);
    return tensor;
  }

  /** Returns the memory of a contiguous tensor as a little-endian buffer. */
  public static ByteBuffer bytesOf(Tensor tensor) {
    return tensor.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Throws InvalidArgumentException if a buffer of {@code bytes} bytes is too large to verify. */
  public static void requireAddressable(String option, long bytes) {
    if (bytes > Integer.MAX_VALUE) {
      throw new InvalidArgumentException(
          option + ": a buffer of " + bytes + " bytes a rank; a bench takes less than 2 GiB");
    }
  }

  @Override
  public void close() {
    if (window != null) {
      window.close();
    }
    own.forEach(Tensor::close);
  }
}
