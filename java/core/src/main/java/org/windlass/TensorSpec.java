// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.List;

/**
 * A global tensor.
 *
 * @param name what the ranks call it
 * @param shape extents of the whole tensor; empty for a scalar
 * @param dtype type of its elements
 * @param layout how it lies on ranks
 */
public record TensorSpec(String name, List<Long> shape, DType dtype, Layout layout) {
  /**
   * @throws InvalidArgumentException if an extent is negative, the bytes of the tensor exceed 64
   *     bits, or a placement shards a dimension that the tensor lacks
   */
  public TensorSpec {
    shape = List.copyOf(shape);
    long[] extents = shape.stream().mapToLong(Long::longValue).toArray();
    layout.check(name, extents);
    Layout.requireCountable(name, extents, dtype);
  }

  /** The global tensor of these extents. */
  public static TensorSpec of(String name, DType dtype, Layout layout, long... shape) {
    return new TensorSpec(name, Arrays.stream(shape).boxed().toList(), dtype, layout);
  }

  /** The extents as an array. */
  public long[] extents() {
    return shape.stream().mapToLong(Long::longValue).toArray();
  }
}
