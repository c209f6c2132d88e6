// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.Shapes;

/** Checks a tensor's shape, so that calculations with it can't overflow. */
final class ShapeChecks {
  private ShapeChecks() {}

  /** Returns a checked copy: at most 16 extents, none negative, and a size that fits 63 bits. */
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
            what + ": shape " + Arrays.toString(copy) + " of " + dtype
                + " has 2^63 bytes or more");
      }
      bytes *= factor;
    }
    return copy;
  }

  static int elementBytes(String what, DType dtype) {
    if (Objects.requireNonNull(dtype, "dtype").code() < 0) {
      throw new UnsupportedException(
          what + ": dtype is " + dtype + "; a tensor's elements are whole bytes");
    }
    return dtype.bytes();
  }

  static void checkDimension(String what, String name, int dim, int ndim) {
    if (dim < 0 || dim >= ndim) {
      throw new InvalidArgumentException(Shapes.badDimension(what, name, dim, ndim));
    }
  }
}
