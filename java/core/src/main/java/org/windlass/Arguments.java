// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.Shapes;
import org.windlass.kernel.Target;

/**
 * Checks the arguments that the native side does not see. These include null, read-only and strided
 * tensors, and tensors with different dtypes in one call. They also include the window of a tensor
 * and the lengths of lists. If all arguments are valid, a check costs only a few comparisons of
 * fields.
 */
final class Arguments {
  private Arguments() {}

  /**
   * Throws for wrong tensors of a collective. A tensor is null if the operation does not use it on
   * this rank.
   */
  static void buffers(int operation, @Nullable Tensor in, @Nullable Tensor out) {
    if ((in != null && !in.contiguous)
        || (out != null && (!out.contiguous || out.memory.readOnly))
        || (in != null && out != null && in.dtype != out.dtype)) {
      throw badBuffers(call(operation), in, out);
    }
    if (in != null && in.memory.onDevice) {
      requireDevices(call(operation), "in", in);
    }
    if (out != null && out.memory.onDevice) {
      requireDevices(call(operation), "out", out);
    }
  }

  static void inPlace(int operation, Tensor tensor) {
    Objects.requireNonNull(tensor, "tensor");
    if (!tensor.contiguous || tensor.memory.readOnly) {
      requireContiguous(call(operation), "tensor", tensor);
      writable(call(operation), "tensor", tensor);
    }
    if (tensor.memory.onDevice) {
      requireDevices(call(operation), "tensor", tensor);
    }
    if (!tensor.memory.usable()) {
      throw tensor.closed(call(operation), "tensor");
    }
  }

  /** Throws for a tensor in device memory, unless the loaded kernels run on devices. */
  static void requireDevices(String what, String name, Tensor tensor) {
    Target target = Target.loaded();
    if (target != Target.CUDA) {
      throw new UnsupportedException(
          what + ": " + name + " (" + tensor + ") is in a device's memory, which kernels of target "
              + target + " can't access; kernels of target " + Target.CUDA + " can");
    }
  }

  /** Throws for wrong arguments of a collective on a stream. {@code root} is 0 if there is none. */
  static void onStream(
      int operation, @Nullable Tensor in, @Nullable Tensor out, int root, int ranks) {
    if (root < 0 || root >= ranks) {
      throw new InvalidArgumentException(
          call(operation) + ": root is " + root + "; it must lie in [0, " + ranks + ")");
    }
    if (Target.loaded() != Target.CUDA) {
      throw new UnsupportedException(
          call(operation) + " on a stream: kernels of target " + Target.loaded()
              + " don't run on streams; kernels of target " + Target.CUDA + " do");
    }
    buffers(operation, in, out);
    requireDeviceMemory(operation, "in", in);
    requireDeviceMemory(operation, "out", out);
  }

  static void inPlaceOnStream(int operation, Tensor tensor) {
    Objects.requireNonNull(tensor, "tensor");
    if (Target.loaded() == Target.CUDA) {
      inPlace(operation, tensor);
      requireDeviceMemory(operation, "tensor", tensor);
    }
  }

  private static void requireDeviceMemory(int operation, String name, @Nullable Tensor tensor) {
    if (tensor != null && tensor.numel > 0 && !tensor.memory.onDevice) {
      throw new UnsupportedException(
          call(operation) + " on a stream: " + name + " (" + tensor + ") is in the host's memory;"
              + " copy it to a device first, or call the communicator's own " + call(operation));
    }
  }

  /** Returns the method's name for an operation, such as allGatherv for all-gather-v. */
  static String call(int operation) {
    return Native.wl_call_name(operation);
  }

  private static InvalidArgumentException badBuffers(
      String what, @Nullable Tensor in, @Nullable Tensor out) {
    requireContiguous(what, "out", out);
    requireContiguous(what, "in", in);
    if (out != null) {
      writable(what, "out", out);
    }
    return refused(
        what,
        "in has dtype " + Objects.requireNonNull(in).dtype + ", out has "
            + Objects.requireNonNull(out).dtype + "; they must agree");
  }

  /**
   * Throws unless {@code part} and {@code whole}, which has the parts of all ranks, differ only
   * along {@code dim}. Returns the number of rows of a part as a matrix, or 0 if {@code dim} is 0.
   */
  static long rowsAlong(
      String what, String partName, Tensor part, String wholeName, Tensor whole, int dim) {
    int ndim = Objects.requireNonNull(part, partName).shape.length;
    long[] expected = Objects.requireNonNull(whole, wholeName).shape.clone();
    if (dim < 0 || dim >= ndim) {
      throw new InvalidArgumentException(Shapes.badDimension(what, "dim", dim, ndim));
    }
    if (expected.length == ndim) {
      expected[dim] = part.shape[dim];
    }
    if (!Arrays.equals(expected, part.shape)) {
      throw refused(
          what,
          partName + " is " + part + ", " + wholeName + " " + whole
              + "; they must have the same shape, except in dim " + dim);
    }
    long rows = 1;
    for (int d = 0; d < dim; d++) {
      rows *= part.shape[d];
    }
    return dim == 0 ? 0 : rows;
  }

  static void list(String what, String name, long[] list, int size) {
    Objects.requireNonNull(list, name);
    if (list.length != size) {
      throw refused(
          what, name + " has " + list.length + " values; it must have one for each of " + size
              + " ranks");
    }
  }

  /** Throws if the tensor of a send or a receive is wrong. */
  static void message(String what, boolean sends, Tensor tensor) {
    if (!Objects.requireNonNull(tensor, "tensor").contiguous
        || tensor.memory.onDevice
        || (!sends && tensor.memory.readOnly)) {
      requireContiguous(what, "tensor", tensor);
      if (tensor.memory.onDevice) {
        throw tensor.memory.notOfHost(what + ": tensor (" + tensor + ")");
      }
      writable(what, "tensor", tensor);
    }
  }

  /**
   * Throws if one of the tensors of a one-sided transfer is wrong: the local one, or the one in a
   * peer's part of a window.
   */
  static void oneSided(String what, Window window, Tensor local, DistributedTensor remote) {
    Objects.requireNonNull(local, "local");
    if (Objects.requireNonNull(remote, "remote").window() != window) {
      throw refused(what, "remote (" + remote + ") is in another window");
    }
  }

  static void writable(String what, String name, Tensor tensor) {
    if (tensor.memory.readOnly) {
      throw refused(what, name + " (" + tensor + ") is read-only");
    }
  }

  private static void requireContiguous(String what, String name, @Nullable Tensor tensor) {
    if (tensor != null && !tensor.contiguous) {
      throw refused(
          what, name + " (" + tensor + ") is not contiguous; copy it to a contiguous tensor first");
    }
  }

  private static InvalidArgumentException refused(String what, String why) {
    return new InvalidArgumentException(what + ": " + why);
  }
}
