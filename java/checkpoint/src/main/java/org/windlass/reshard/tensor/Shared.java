// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Keeps only one of several equal objects, so that many similar tensors need little memory. */
public final class Shared {
  private final Map<Object, Object> known = new HashMap<>();
  private final Map<List<Long>, long[]> shapes = new HashMap<>();

  /**
   * Returns the first object passed here that is equal to {@code value}. The object must not
   * change.
   */
  @SuppressWarnings("unchecked")
  public <T> T one(T value) {
    return (T) known.computeIfAbsent(value, key -> key);
  }

  /**
   * Returns the first array passed here that is equal to {@code shape}. No code may write to it.
   */
  public long[] one(long[] shape) {
    return shapes.computeIfAbsent(Arrays.stream(shape).boxed().toList(), key -> shape);
  }
}
