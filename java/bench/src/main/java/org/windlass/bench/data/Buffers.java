// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;

/** The memory of a rank's tensors: a window that all ranks hold, or memory of its own. */
public final class Buffers implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private final Window window;
  private final List<Tensor> own = new ArrayList<>();

  /**
   * Collective where tensors lie in a window.
   *
   * @param plain whether tensors lie in memory of this rank's own instead
   * @param tensorBytes the size of each tensor to come, the same on every rank
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

  /** The memory of a contiguous tensor, little-endian. */
  public static ByteBuffer bytesOf(Tensor tensor) {
    return tensor.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * @param option that asks for it
   * @throws InvalidArgumentException if a buffer of {@code bytes} is more than a bench can check
   */
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
