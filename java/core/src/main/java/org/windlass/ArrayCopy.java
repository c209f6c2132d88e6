// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Shapes;

/**
 * Copies elements between Java arrays and tensors. float and double elements are cast. Integer
 * arrays hold the bits of a dtype of the same width. Elements of a contiguous tensor that need no
 * cast are copied once. Others go through a staging buffer of limited size.
 */
final class ArrayCopy {
  private static final int STAGING_BYTES = 64 << 10;

  /** Most bytes of a tensor that are copied at a time without a staging buffer. */
  private static final int STRAIGHT_BYTES = 1 << 30;

  private ArrayCopy() {}

  /** Copies elements between the array, from index {@code start} on, and a buffer. */
  @FunctionalInterface
  private interface Part {
    void move(ByteBuffer buffer, int start, int count);
  }

  static void from(Tensor tensor, float[] values) {
    check("copyFrom", tensor, length(values), DType.F32, DType.F32);
    run("copyFrom", tensor, DType.F32, true, (b, at, n) -> b.asFloatBuffer().put(values, at, n));
  }

  static void from(Tensor tensor, double[] values) {
    check("copyFrom", tensor, length(values), DType.F64, DType.F64);
    run("copyFrom", tensor, DType.F64, true, (b, at, n) -> b.asDoubleBuffer().put(values, at, n));
  }

  static void from(Tensor tensor, byte[] values) {
    DType dtype = check("copyFrom", tensor, length(values), DType.U8, null);
    run("copyFrom", tensor, dtype, true, (b, at, n) -> b.put(0, values, at, n));
  }

  static void from(Tensor tensor, short[] values) {
    DType dtype = check("copyFrom", tensor, length(values), DType.I16, null);
    run("copyFrom", tensor, dtype, true, (b, at, n) -> b.asShortBuffer().put(values, at, n));
  }

  static void from(Tensor tensor, int[] values) {
    DType dtype = check("copyFrom", tensor, length(values), DType.I32, null);
    run("copyFrom", tensor, dtype, true, (b, at, n) -> b.asIntBuffer().put(values, at, n));
  }

  static void from(Tensor tensor, long[] values) {
    DType dtype = check("copyFrom", tensor, length(values), DType.I64, null);
    run("copyFrom", tensor, dtype, true, (b, at, n) -> b.asLongBuffer().put(values, at, n));
  }

  static void to(Tensor tensor, float[] values) {
    check("copyTo", tensor, length(values), DType.F32, DType.F32);
    run("copyTo", tensor, DType.F32, false, (b, at, n) -> b.asFloatBuffer().get(values, at, n));
  }

  static void to(Tensor tensor, double[] values) {
    check("copyTo", tensor, length(values), DType.F64, DType.F64);
    run("copyTo", tensor, DType.F64, false, (b, at, n) -> b.asDoubleBuffer().get(values, at, n));
  }

  static void to(Tensor tensor, byte[] values) {
    DType dtype = check("copyTo", tensor, length(values), DType.U8, null);
    run("copyTo", tensor, dtype, false, (b, at, n) -> b.get(0, values, at, n));
  }

  static void to(Tensor tensor, short[] values) {
    DType dtype = check("copyTo", tensor, length(values), DType.I16, null);
    run("copyTo", tensor, dtype, false, (b, at, n) -> b.asShortBuffer().get(values, at, n));
  }

  static void to(Tensor tensor, int[] values) {
    DType dtype = check("copyTo", tensor, length(values), DType.I32, null);
    run("copyTo", tensor, dtype, false, (b, at, n) -> b.asIntBuffer().get(values, at, n));
  }

  static void to(Tensor tensor, long[] values) {
    DType dtype = check("copyTo", tensor, length(values), DType.I64, null);
    run("copyTo", tensor, dtype, false, (b, at, n) -> b.asLongBuffer().get(values, at, n));
  }

  private static int length(Object array) {
    return java.lang.reflect.Array.getLength(Objects.requireNonNull(array, "values"));
  }

  /**
   * Throws unless an array fits a tensor. Returns the dtype of the staging buffer: {@code cast}, or
   * the tensor's if {@code cast} is null and bits are copied. Elements of the array are as wide as
   * {@code like}.
   */
  private static DType check(
      String what, Tensor tensor, int length, DType like, @Nullable DType cast) {
    DType dtype = tensor.dtype;
    boolean fits;
    if (cast != null) {
      fits = cast.canCast(dtype);
    } else {
      boolean wide = dtype.bits() >= 32;
      fits = dtype.bits() == like.bits() && (!wide || dtype.isInteger());
    }
    if (!fits) {
      throw new InvalidArgumentException(
          what + ": values has " + (cast != null ? "floating" : like.bits() + "-bit integer")
              + " elements, which don't carry dtype " + dtype + "; use " + arrayOf(dtype));
    }
    if (length != tensor.numel) {
      throw new InvalidArgumentException(
          what + ": values has " + length + " elements, the tensor has " + tensor.numel);
    }
    return cast != null ? cast : dtype;
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

  private static void run(String what, Tensor tensor, DType staged, boolean write, Part part) {
    Elements.hold(what, "the tensor", tensor, write);
    try (Scratch scratch = Scratch.take()) {
      if (tensor.contiguous && tensor.dtype == staged && !tensor.memory.onDevice) {
        straight(tensor, part);
        return;
      }
      long bytes = Math.min(tensor.numel * staged.bytes(), STAGING_BYTES);
      ByteBuffer staging = ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
      Pass pass = new Pass(staged, write, part, staging, NativeMemory.address(staging), scratch);
      pass.over(tensor, 0);
      Reference.reachabilityFence(staging);
    } finally {
      Elements.release(tensor);
    }
  }

  private static void straight(Tensor tensor, Part part) {
    long size = tensor.dtype.bytes();
    long most = STRAIGHT_BYTES / size;
    for (long at = 0; at < tensor.numel; at += most) {
      long count = Math.min(most, tensor.numel - at);
      ByteBuffer buffer = NativeMemory.buffer(tensor.address + at * size, count * size);
      part.move(buffer, (int) at, (int) count);
    }
  }

  private record Pass(
      DType staged, boolean write, Part part, ByteBuffer staging, long address, Scratch scratch) {
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
        part.move(staging, at, count);
        Elements.check(Native.wl_tensor_copy(other, own, scratch.error()), scratch);
      } else {
        Elements.check(Native.wl_tensor_copy(own, other, scratch.error()), scratch);
        part.move(staging, at, count);
      }
    }
  }
}
