// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/** Arithmetic on shapes and strides. Callers check them before, so that nothing overflows. */
public final class Shapes {
  private Shapes() {}

  public static long numel(long[] shape) {
    long numel = 1;
    for (long extent : shape) {
      numel *= extent;
    }
    return numel;
  }

  public static long[] contiguousStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride *= Math.max(shape[d], 1);
    }
    return strides;
  }

  public static boolean contiguous(long[] shape, long[] strides) {
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

  /**
   * Returns the number of elements from the tensor's first to its last element in memory, including
   * gaps.
   */
  public static long span(long[] shape, long[] strides) {
    long last = 0;
    for (int d = 0; d < shape.length; d++) {
      if (shape[d] == 0) {
        return 0;
      }
      last += (shape[d] - 1) * strides[d];
    }
    return last + 1;
  }

  public static String badDimension(String what, String name, int dim, int ndim) {
    return what + ": " + name + " is " + dim + "; "
        + (ndim == 0 ? "a scalar has no dimensions" : "it must lie in [0, " + ndim + ")");
  }

  public static long[] without(long[] values, int index) {
    long[] rest = new long[values.length - 1];
    System.arraycopy(values, 0, rest, 0, index);
    System.arraycopy(values, index + 1, rest, index, rest.length - index);
    return rest;
  }

  public static long[] swapped(long[] values, int a, int b) {
    long[] copy = values.clone();
    copy[a] = values[b];
    copy[b] = values[a];
    return copy;
  }
}
