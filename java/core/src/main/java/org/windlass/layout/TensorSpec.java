// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The specification of a global tensor.
 *
 * <p>The layout cuts a padded tensor as if it had the padded shape. An example is a vocabulary that
 * is rounded up to a multiple of the number of ranks. The real elements come first along every
 * dimension, and only they move. After a transfer, the padding of a target is zero.
 *
 * @param name name of the tensor on all ranks
 * @param shape extents of the whole tensor; empty for a scalar
 * @param dtype type of its elements
 * @param layout placement of the tensor on ranks
 * @param paddedShape extents that the layout cuts; {@code shape} without padding
 */
public record TensorSpec(
    String name, List<Long> shape, DType dtype, Layout layout, List<Long> paddedShape) {
  /**
   * Creates a specification.
   *
   * @throws InvalidArgumentException if an extent is negative or above the padded one, a placement
   *     shards a missing dimension, or the padded tensor's bytes exceed 64 bits
   */
  public TensorSpec {
    Objects.requireNonNull(name, "name");
    shape = Copies.list(shape, "shape");
    Objects.requireNonNull(dtype, "dtype");
    Objects.requireNonNull(layout, "layout");
    paddedShape = Copies.list(paddedShape, "paddedShape");
    layout.checkDimensions(name, array(shape));
    boolean fits = shape.size() == paddedShape.size();
    for (int d = 0; fits && d < shape.size(); d++) {
      fits = shape.get(d) <= paddedShape.get(d);
    }
    if (!fits) {
      throw new InvalidArgumentException(
          "tensor '" + name + "': padded shape " + paddedShape + " is not one of shape " + shape
              + " with extents as large or larger");
    }
    Layout.requireCountable(name, array(paddedShape), dtype);
  }

  /** Returns the specification of a tensor without padding. */
  public static TensorSpec of(String name, DType dtype, Layout layout, long... shape) {
    Objects.requireNonNull(shape, "shape");
    List<Long> extents = Arrays.stream(shape).boxed().toList();
    return new TensorSpec(name, extents, dtype, layout, extents);
  }

  /** Returns this tensor, but cut as if it had the shape {@code paddedShape}. */
  public TensorSpec padded(long... paddedShape) {
    Objects.requireNonNull(paddedShape, "paddedShape");
    return new TensorSpec(
        name, shape, dtype, layout, Arrays.stream(paddedShape).boxed().toList());
  }

  /** Returns true if {@link #paddedShape} differs from {@link #shape}. */
  public boolean isPadded() {
    return !paddedShape.equals(shape);
  }

  /** Returns {@link #shape} as an array. */
  public long[] extents() {
    return array(shape);
  }

  /** Returns {@link #paddedShape} as an array. */
  public long[] paddedExtents() {
    return array(paddedShape);
  }

  /** Returns the shape of the local tensor that {@code rank} holds, including padding. */
  public long[] localShape(int rank) {
    return layout.localRegion(name, paddedExtents(), paddedExtents(), rank).shape();
  }

  /**
   * Returns the part of the tensor that {@code rank} holds, without padding. Stored without gaps,
   * it comes first along every dimension of the local tensor, before the padding.
   */
  public Region localRegion(int rank) {
    return layout.localRegion(name, extents(), paddedExtents(), rank);
  }

  private static long[] array(List<Long> extents) {
    return extents.stream().mapToLong(Long::longValue).toArray();
  }
}
