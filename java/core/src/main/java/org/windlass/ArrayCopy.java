// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.lang.reflect.Array;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Shapes;

/**
 * Copies elements between Java arrays and tensors. float and double elements are cast. Integer
 * arrays hold the bits of a dtype of the same width. If a tensor is contiguous and its elements
 * need no cast, the elements are copied once. Otherwise they are copied through a staging buffer of
 * limited size.
 */
final class ArrayCopy {
  private static final int STAGING_BYTES = 64 << 10;

  /** Largest number of bytes that are copied at a time without a staging buffer. */
  private static final int STRAIGHT_BYTES = 1 << 30;

  private static final Map<Class<?>, DType> DTYPES =
      Map.of(
          float[].class, DType.F32,
          double[].class, DType.F64,
          byte[].class, DType.U8,
          short[].class, DType.I16,
          int[].class, DType.I32,
          long[].class, DType.I64);

  private ArrayCopy() {}

  /** Returns the dtype of an array's elements. */
  static DType dtype(Object values) {
    return Objects.requireNonNull(DTYPES.get(values.getClass()));
  }

  static int length(Object values) {
    return Array.getLength(Objects.requireNonNull(values, "values"));
  }

  static Tensor from(Tensor tensor, Object values) {
    copy("copyFrom", tensor, values, true);
    return tensor;
  }

  static void to(Tensor tensor, Object values) {
    copy("copyTo", tensor, values, false);
  }

  /** Copies elements between a buffer and the array, from index {@code at} on. */
  private static Buffer move(ByteBuffer b, Object values, int at, int n, boolean write) {
    if (values instanceof float[] v) {
      return write ? b.asFloatBuffer().put(v, at, n) : b.asFloatBuffer().get(v, at, n);
    } else if (values instanceof double[] v) {
      return write ? b.asDoubleBuffer().put(v, at, n) : b.asDoubleBuffer().get(v, at, n);
    } else if (values instanceof short[] v) {
      return write ? b.asShortBuffer().put(v, at, n) : b.asShortBuffer().get(v, at, n);
    } else if (values instanceof int[] v) {
      return write ? b.asIntBuffer().put(v, at, n) : b.asIntBuffer().get(v, at, n);
    } else if (values instanceof long[] v) {
      return write ? b.asLongBuffer().put(v, at, n) : b.asLongBuffer().get(v, at, n);
    }
    byte[] v = (byte[]) values;
    return write ? b.put(0, v, at, n) : b.get(0, v, at, n);
  }

  /**
   * Throws unless an array fits a tensor. Returns the dtype of the staging buffer: the array's
   * dtype if elements are cast, or the tensor's dtype if bits are copied.
   */
  private static DType check(String what, Tensor tensor, Object values) {
    int length = length(values);
    DType like = dtype(values);
    DType dtype = tensor.dtype;
    boolean fits =
        like.isFloating()
            ? like.canCast(dtype)
            : dtype.bits() == like.bits() && (dtype.bits() < 32 || dtype.isInteger());
    if (!fits) {
      throw new InvalidArgumentException(
          what + ": values has " + (like.isFloating() ? "floating" : like.bits() + "-bit integer")
              + " elements, which can't be copied to a tensor of dtype " + dtype
              + "; use " + arrayOf(dtype));
    }
    if (length != tensor.numel) {
      throw new InvalidArgumentException(
          what + ": values has " + length + " elements, the tensor has " + tensor.numel);
    }
    return like.isFloating() ? like : dtype;
  }

  private static String arrayOf(DType dtype) {
    if (DType.F32.canCast(dtype)) {
      return "float[] or double[]";
    }
    return switch (dtype.bits()) {
      case 8 -> "byte[]";
      case 16 -> "short[]";
      case 32 -> "int[]";
      default -> dtype.isInteger() ? "long[]" : "asByteBuffer";
    };
  }

  private static void copy(String what, Tensor tensor, Object values, boolean write) {
    DType staged = check(what, tensor, values);
    Elements.hold(what, "the tensor", tensor, write);
    try (Scratch scratch = Scratch.take()) {
      if (tensor.contiguous && tensor.dtype == staged && !tensor.memory.onDevice) {
        straight(tensor, values, write);
        return;
      }
      long bytes = Math.min(tensor.numel * staged.bytes(), STAGING_BYTES);
      ByteBuffer staging = ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
      Pass pass = new Pass(staged, write, values, staging, NativeMemory.address(staging), scratch);
      pass.over(tensor, 0);
      Reference.reachabilityFence(staging);
    } finally {
      Elements.release(tensor);
    }
  }

  private static void straight(Tensor tensor, Object values, boolean write) {
    long size = tensor.dtype.bytes();
    long most = STRAIGHT_BYTES / size;
    for (long at = 0; at < tensor.numel; at += most) {
      long count = Math.min(most, tensor.numel - at);
      ByteBuffer buffer = NativeMemory.buffer(tensor.address + at * size, count * size);
      move(buffer, values, (int) at, (int) count, write);
    }
  }

  private record Pass(
      DType staged, boolean write, Object values, ByteBuffer staging, long address,
      Scratch scratch) {
    void over(Tensor tensor, long at) {
      if (tensor.numel == 0) {
        return;
      }
      long most = staging.capacity() / staged.bytes();
      if (tensor.numel <= most) {
        block(tensor, (int) at);
        return;
      }
      long extent = tensor.shape[0];
      long row = tensor.numel / extent;
      if (row > most) {
        for (long i = 0; i < extent; i++) {
          over(tensor.select(0, i), at + i * row);
        }
        return;
      }
      long step = most / row;
      for (long i = 0; i < extent; i += step) {
        block(tensor.narrow(0, i, Math.min(step, extent - i)), (int) (at + i * row));
      }
    }

    private void block(Tensor tensor, int at) {
      int count = (int) tensor.numel;
      long[] strides = Shapes.contiguousStrides(tensor.shape);
      long own = scratch.tensor(write ? 1 : 0, staged.code(), address, tensor.shape, strides);
      long other = Elements.describe(scratch, write ? 0 : 1, tensor);
      if (write) {
        move(staging, values, at, count, true);
        Elements.check(Native.wl_tensor_copy(other, own, scratch.error()), scratch);
      } else {
        Elements.check(Native.wl_tensor_copy(own, other, scratch.error()), scratch);
        move(staging, values, at, count, false);
      }
    }
  }
}
