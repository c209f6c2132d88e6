// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;

/** Checks tensors that hold rows. A check that passes costs only a few comparisons. */
final class Matrices {
  private Matrices() {}

  /**
   * Returns the number of rows of {@code tensor}. Throws unless it is contiguous, of {@code dtype},
   * and has shape [rows, columns].
   */
  static long rows(String call, String name, Tensor tensor, DType dtype, long columns) {
    if (tensor.dtype() != dtype
        || tensor.ndim() != 2
        || tensor.size(1) != columns
        || !tensor.isContiguous()) {
      throw refused(call, name, tensor, "[n, " + columns + "]", dtype);
    }
    return tensor.size(0);
  }

  static void require(
      String call, String name, Tensor tensor, DType dtype, long rows, long columns) {
    if (tensor.dtype() != dtype
        || tensor.ndim() != 2
        || tensor.size(0) != rows
        || tensor.size(1) != columns
        || !tensor.isContiguous()) {
      throw refused(call, name, tensor, "[" + rows + ", " + columns + "]", dtype);
    }
  }

  static void requireWritable(String call, String name, Tensor tensor) {
    if (tensor.memory().readOnly) {
      throw new InvalidArgumentException(call + ": " + name + " (" + tensor + ") is read-only");
    }
  }

  private static InvalidArgumentException refused(
      String call, String name, Tensor tensor, String shape, DType dtype) {
    return new InvalidArgumentException(
        call + ": " + name + " is " + tensor + "; it must be contiguous, " + shape + " of " + dtype);
  }
}
