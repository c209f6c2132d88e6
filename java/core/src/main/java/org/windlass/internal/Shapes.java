// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/** Arithmetic of shapes and strides that were checked, so that it can't overflow. */
public final class Shapes {
  private Shapes() {}

  /** Returns the number of elements of a shape. */
  public static long numel(long[] shape) {
    long numel = 1;
    for (long extent : shape) {
      numel *= extent;
    }
    return numel;
  }

  /** Returns the strides, in elements, of a contiguous tensor. */
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

  /** Returns the number of elements in memory from the first to the last, with gaps. */
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

  /** Returns the message for {@code dim}, which is no dimension of {@code ndim}. */
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
