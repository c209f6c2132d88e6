// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;

/** What the weights of the examples hold, as a function of name, row and column. */
final class Golden {
  private Golden() {}

  /** A whole number from -8 to 8, which every floating dtype holds. */
  static float value(String name, long row, long column) {
    return Math.floorMod(name.hashCode() + 31 * row + 7 * column, 17) - 8;
  }

  /** This rank's rows of a matrix, padding left zero; null outside the mesh. */
  static Tensor rows(TensorSpec spec, int rank) {
    if (!spec.layout().mesh().contains(rank)) {
      return null;
    }
    Tensor tensor = Tensor.allocate(spec.dtype(), spec.localShape(rank));
    Region region = spec.localRegion(rank);
    Region.Interval rows = region.intervals(0).get(0);
    Tensor real = tensor.narrow(0, 0, rows.length());
    Tensor values = Tensor.allocate(DType.F32, real.shape());
    float[] array = new float[(int) real.numel()];
    long columns = real.shape()[1];
    for (int i = 0; i < array.length; i++) {
      array[i] = value(spec.name(), rows.start() + i / columns, i % columns);
    }
    real.copyFrom(values.copyFrom(array));
    return tensor;
  }

  /** Checks that row {@code at} of a matrix is row {@code row} of the tensor {@code name}. */
  static void checkRow(Tensor matrix, long at, String name, long row) {
    for (long column = 0; column < matrix.shape()[1]; column++) {
      check(matrix, at, column, value(name, row, column), name + ", row " + row);
    }
  }

  /** Checks that row {@code at} of a matrix is zero. */
  static void checkZeroRow(Tensor matrix, long at) {
    for (long column = 0; column < matrix.shape()[1]; column++) {
      check(matrix, at, column, 0, "padding");
    }
  }

  private static void check(Tensor matrix, long at, long column, float expected, String what) {
    double found = matrix.getDouble(at, column);
    if (found != expected) {
      throw new VerificationFailedException(
          what + ", row " + at + " of " + matrix + ": expected " + expected + ", found " + found);
    }
  }
}
