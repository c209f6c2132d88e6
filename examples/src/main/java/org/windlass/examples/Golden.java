// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.util.function.IntToDoubleFunction;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;

/** Generates the values of the examples' tensors, and checks tensors against them. */
final class Golden {
  /** The values of a matrix as a function of row and column. */
  @FunctionalInterface
  interface Matrix {
    double at(long row, long column);
  }

  private Golden() {}

  /** Sets each element of a floating tensor from its index in row-major order. */
  static void fill(Tensor tensor, IntToDoubleFunction value) {
    double[] values = new double[(int) tensor.numel()];
    for (int i = 0; i < values.length; i++) {
      values[i] = value.applyAsDouble(i);
    }
    tensor.copyFrom(values);
  }

  /** Checks each element against its golden value, by its index in row-major order. */
  static void check(Tensor tensor, IntToDoubleFunction golden) {
    check(tensor, 0, golden);
  }

  /**
   * Checks each element against its golden value. A difference up to {@code tolerance} is accepted.
   */
  static void check(Tensor tensor, double tolerance, IntToDoubleFunction golden) {
    double[] values = new double[(int) tensor.numel()];
    tensor.copyTo(values);
    for (int i = 0; i < values.length; i++) {
      double expected = golden.applyAsDouble(i);
      // The negated comparison also rejects NaN.
      if (!(Math.abs(values[i] - expected) <= tolerance)) {
        throw new VerificationFailedException(
            "element " + i + " of " + tensor + ": expected " + expected + ", found " + values[i]);
      }
    }
  }

  /** Sets a rank's part of a matrix. */
  static void fill(Tensor part, Region region, Matrix matrix) {
    fill(part, inRegion(region, matrix));
  }

  /** Checks a rank's part of a matrix against its golden values. */
  static void check(Tensor part, Region region, Matrix golden) {
    check(part, inRegion(region, golden));
  }

  /** Returns the elements of a region, by their index in it. */
  private static IntToDoubleFunction inRegion(Region region, Matrix matrix) {
    Region.Interval rows = region.intervals(0).get(0);
    Region.Interval columns = region.intervals(1).get(0);
    return i ->
        matrix.at(rows.start() + i / columns.length(), columns.start() + i % columns.length());
  }

  /**
   * Returns a weight's value: an integer from -8 to 8, which every floating dtype holds exactly.
   */
  static float value(String name, long row, long column) {
    return Math.floorMod(name.hashCode() + 31 * row + 7 * column, 17) - 8;
  }

  /**
   * Returns this rank's rows of a weight with zero padding, or null on a rank outside the mesh.
   */
  static Tensor rows(TensorSpec spec, int rank) {
    if (!spec.layout().mesh().contains(rank)) {
      return null;
    }
    Tensor tensor = Tensor.allocate(spec.dtype(), spec.localShape(rank));
    Region region = spec.localRegion(rank);
    Tensor real = tensor.narrow(0, 0, region.extent(0));
    Tensor values = Tensor.allocate(DType.F32, real.shape());
    fill(values, region, (row, column) -> value(spec.name(), row, column));
    real.copyFrom(values);
    return tensor;
  }

  /** Checks that row {@code at} of a matrix is row {@code row} of the weight {@code name}. */
  static void checkRow(Tensor matrix, long at, String name, long row) {
    check(matrix.select(0, at), column -> value(name, row, column));
  }

  /** Checks that row {@code at} of a matrix is zero. */
  static void checkZeroRow(Tensor matrix, long at) {
    check(matrix.select(0, at), column -> 0);
  }
}
