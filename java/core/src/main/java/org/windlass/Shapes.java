// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Objects;
import org.windlass.internal.Native;

/** Arithmetic of shapes and strides that refuses what overflows. */
final class Shapes {
  private Shapes() {}

  /**
   * A copy of {@code shape}, its extents checked: at most 16, none negative, elements and bytes
   * within 63 bits.
   */
  static long[] checked(String what, DType dtype, long... shape) {
    long[] copy = Objects.requireNonNull(shape, "shape").clone();
    if (copy.length > Native.WL_MAX_DIMS) {
      throw new InvalidArgumentException(
          what + ": shape has " + copy.length + " dimensions; at most " + Native.WL_MAX_DIMS);
    }
    long bytes = elementBytes(what, dtype);
    for (int d = 0; d < copy.length; d++) {
      if (copy[d] < 0) {
        throw new InvalidArgumentException(
            what + ": shape[" + d + "] is " + copy[d] + "; it must be 0 or more");
      }
      long factor = Math.max(copy[d], 1);
      if (Math.multiplyHigh(bytes, factor) != 0 || bytes * factor < 0) {
        throw new InvalidArgumentException(
            what
                + ": shape "
                + Arrays.toString(copy)
                + " of "
                + dtype
                + " has more bytes than 63 bits count");
      }
      bytes *= factor;
    }
    return copy;
  }

  /** Bytes of an element of a dtype that tensors can have. */
  static int elementBytes(String what, DType dtype) {
    if (Objects.requireNonNull(dtype, "dtype").code() < 0) {
      throw new UnsupportedException(
          what + ": dtype is " + dtype + "; a tensor's elements are whole bytes");
    }
    return dtype.bytes();
  }

  /** The product of a checked shape. */
  static long numel(long[] shape) {
    long numel = 1;
    for (long extent : shape) {
      numel *= extent;
    }
    return numel;
  }

  /** Strides of a contiguous tensor with a checked shape. */
  static long[] contiguousStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride *= Math.max(shape[d], 1);
    }
    return strides;
  }

  static boolean contiguous(long[] shape, long[] strides) {
    long expected = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      if (shape[d] == 0) {
        return true;
      }
      if (shape[d] != 1) {
        if (strides[d] != expected) {
          return false;
        }
        expected *= shape[d];
      }
    }
    return true;
  }

  /** Elements from the first to one past the last in memory; 0 if there are none. */
  static long span(long[] shape, long[] strides) {
    long last = 0;
    for (int d = 0; d < shape.length; d++) {
      if (shape[d] == 0) {
        return 0;
      }
      last += (shape[d] - 1) * strides[d];
    }
    return last + 1;
  }

  static void checkDimension(String what, String name, int dim, int ndim) {
    if (dim < 0 || dim >= ndim) {
      throw new InvalidArgumentException(
          what
              + ": "
              + name
              + " is "
              + dim
              + "; "
              + (ndim == 0 ? "a scalar has no dimensions" : "it must lie in [0, " + ndim + ")"));
    }
  }

  static long[] without(long[] values, int index) {
    long[] rest = new long[values.length - 1];
    System.arraycopy(values, 0, rest, 0, index);
    System.arraycopy(values, index + 1, rest, index, rest.length - index);
    return rest;
  }

  static long[] swapped(long[] values, int a, int b) {
    long[] copy = values.clone();
    copy[a] = values[b];
    copy[b] = values[a];
    return copy;
  }
}
