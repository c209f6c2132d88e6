// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Keeps one of several equal objects, so that many tensors that are alike take little memory. */
public final class Shared {
  private final Map<Object, Object> known = new HashMap<>();
  private final Map<List<Long>, long[]> shapes = new HashMap<>();

  /** Returns the object equal to {@code value} that was passed first. It must not change. */
  @SuppressWarnings("unchecked")
  public <T> T one(T value) {
    return (T) known.computeIfAbsent(value, key -> key);
  }

  /** Returns the array equal to {@code shape} that was passed first. Nobody may write to it. */
  public long[] one(long[] shape) {
    return shapes.computeIfAbsent(Arrays.stream(shape).boxed().toList(), key -> shape);
  }
}
