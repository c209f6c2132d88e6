// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.call.CallWords;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.Target;

/**
 * Launches a library's kernel once: pins the tensors, encodes the arguments as 64-bit words, makes
 * one native call, and unpins the tensors. The native side checks the arguments against the
 * kernel's parameters.
 */
final class KernelLaunch {
  private static final int SCALAR_WORDS = 3;
  private static final int TENSOR_WORDS = 6;

  private KernelLaunch() {}

  static void run(
      Endpoint own, Thread thread, Kernel kernel, Object[] arguments, long deadlineNs) {
    int words = words(own, kernel, arguments);
    @Nullable Memory[] pinned = new Memory[arguments.length];
    own.begin(thread);
    CallWords list;
    try {
      pin(own, kernel, arguments, pinned);
      list = own.words().begin(words);
      for (Object argument : arguments) {
        if (argument instanceof Tensor tensor) {
          describe(list, tensor);
        } else {
          DType dtype = Objects.requireNonNull(dtype(argument));
          list.put(Native.WL_ARGUMENT_SCALAR).put(dtype.code()).put(bits(argument));
        }
      }
    } catch (Throwable failed) {
      unpin(pinned);
      own.end();
      throw failed;
    }
    int code =
        Native.wl_launch(
            own.handle,
            kernel.library().handle(),
            kernel.index(),
            list.address(),
            words,
            deadlineNs,
            own.error);
    if (code != Native.WL_OK) {
      throw own.settle(code, pinned);
    }
    own.end();
    unpin(pinned);
    Reference.reachabilityFence(arguments);
  }

  /** Returns the number of 64-bit words for the arguments. Throws for one of a wrong class. */
  private static int words(Endpoint own, Kernel kernel, Object[] arguments) {
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i] == null) {
        throw new NullPointerException("arguments[" + i + "]");
      }
    }
    int words = 0;
    for (int i = 0; i < arguments.length; i++) {
      Object argument = arguments[i];
      if (argument instanceof Tensor tensor) {
        if (tensor.memory.onDevice && kernel.library().target() != Target.CUDA) {
          throw tensor.onDevice(what(own, kernel), "argument " + i);
        }
        words += TENSOR_WORDS + 2 * tensor.shape.length;
      } else if (dtype(argument) != null) {
        words += SCALAR_WORDS;
      } else {
        throw new InvalidArgumentException(
            what(own, kernel) + ": argument " + i + " is of " + argument.getClass().getName()
                + "; a kernel takes tensors, and int, long, float and double");
      }
    }
    return words;
  }

  /**
   * Pins the memory of all tensors. If a tensor can't be pinned, {@code pinned} has the tensors
   * that were pinned before.
   */
  private static void pin(
      Endpoint own, Kernel kernel, Object[] arguments, @Nullable Memory[] pinned) {
    for (int i = 0; i < arguments.length; i++) {
      if (!(arguments[i] instanceof Tensor tensor)) {
        continue;
      }
      if (!tensor.memory.hold()) {
        throw tensor.closed(what(own, kernel), "argument " + i);
      }
      pinned[i] = tensor.memory;
    }
  }

  private static void unpin(@Nullable Memory[] pinned) {
    for (Memory memory : pinned) {
      if (memory != null) {
        memory.unpin();
      }
    }
  }

  private static String what(Endpoint own, Kernel kernel) {
    return "launch of " + kernel.name() + " on rank " + own.rank;
  }

  private static void describe(CallWords list, Tensor tensor) {
    list.put(Native.WL_ARGUMENT_TENSOR)
        .put(tensor.dtype.code())
        .put(tensor.address)
        .put(tensor instanceof DistributedTensor distributed ? distributed.window().handle : 0)
        .put(tensor.memory.readOnly ? 1 : 0)
        .put(tensor.shape.length);
    for (long extent : tensor.shape) {
      list.put(extent);
    }
    for (long stride : tensor.strides) {
      list.put(stride);
    }
  }

  private static @Nullable DType dtype(Object scalar) {
    if (scalar instanceof Integer) {
      return DType.I32;
    } else if (scalar instanceof Long) {
      return DType.I64;
    } else if (scalar instanceof Float) {
      return DType.F32;
    }
    return scalar instanceof Double ? DType.F64 : null;
  }

  private static long bits(Object scalar) {
    if (scalar instanceof Integer value) {
      return Integer.toUnsignedLong(value);
    } else if (scalar instanceof Float value) {
      return Integer.toUnsignedLong(Float.floatToRawIntBits(value));
    }
    return scalar instanceof Long value ? value : Double.doubleToRawLongBits((Double) scalar);
  }
}
