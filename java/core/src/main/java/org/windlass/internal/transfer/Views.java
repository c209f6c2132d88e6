// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.lang.ref.Reference;
import org.windlass.Communicator;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.Shapes;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;
import org.windlass.kernel.Target;

public final class Views {
  private Views() {}

  /** Returns the bytes from the first element to the end of the last; 0 without elements. */
  public static long span(Tensor view) {
    return Shapes.span(view.shape(), view.strides()) * view.dtype().bytes();
  }

  /** Returns true if an element of {@code a} and one of {@code b} share a byte. */
  public static boolean overlap(Tensor a, Tensor b) {
    try (Scratch scratch = Scratch.take()) {
      return Native.wl_tensors_overlap(describe(scratch, 0, a), describe(scratch, 1, b)) == 1;
    }
  }

  /**
   * Returns the exception for a call that finds the memory of {@code view} closed. {@code call} and
   * {@code name} are for its message.
   */
  public static ClosedException closed(String call, String name, Tensor view) {
    return new ClosedException(
        call + ": " + name + " (" + view + ") is over memory that " + view.memory().ending());
  }

  /** Throws UnsupportedException for a view in device memory, unless the kernels run on devices. */
  public static void requireDevices(String call, String name, Tensor view) {
    Target target = Target.loaded();
    if (view.memory().onDevice && target != Target.CUDA) {
      throw new UnsupportedException(
          call + ": " + name + " (" + view + ") is in a device's memory, which kernels of target "
              + target + " can't access; kernels of target " + Target.CUDA + " can");
    }
  }

  /** Sets all elements of the view to zero. The view must be in valid host memory. */
  public static void zero(Tensor view) {
    try (Scratch scratch = Scratch.take()) {
      scratch.elementLong(0);
      long target = describe(scratch, 0, view);
      Failures.check(Native.wl_tensor_fill(target, scratch.element(), scratch.error()), scratch);
    }
  }

  /**
   * Sets all elements of a view in device memory to zero, on the device of the endpoint's rank.
   *
   * @return a {@code wl_code}; the error record of the endpoint's call has the details
   */
  public static int zeroOnDevice(Endpoint endpoint, Tensor view) {
    try (Scratch scratch = Scratch.take()) {
      return Native.wl_device_clear(endpoint.handle, describe(scratch, 0, view), endpoint.error);
    }
  }

  /**
   * Returns the XXH64 of the elements in row-major order. If they are in device memory, the device
   * of the communicator's rank reads them.
   */
  public static long hash(Communicator communicator, String call, Tensor view, long seed) {
    Memory memory = view.memory();
    if (!memory.hold()) {
      throw closed(call, "a view", view);
    }
    try (Scratch scratch = Scratch.take()) {
      long tensor = describe(scratch, 0, view);
      if (memory.onDevice) {
        Endpoint endpoint = communicator.endpoint();
        return endpoint.call(
            (out, error) -> Native.wl_device_hash(endpoint.handle, tensor, seed, out, error));
      }
      scratch.elementLong(tensor);
      int dtype = view.dtype().code();
      long out = scratch.out();
      long error = scratch.error();
      Failures.check(
          Native.wl_tensor_hash(scratch.element(), 1, 0, dtype, dtype, seed, out, error), scratch);
      return scratch.outValue();
    } finally {
      memory.unpin();
      Reference.reachabilityFence(view);
      Reference.reachabilityFence(communicator);
    }
  }

  private static long describe(Scratch scratch, int slot, Tensor view) {
    return scratch.tensor(slot, view.dtype().code(), view.address(), view.shape(), view.strides());
  }
}
