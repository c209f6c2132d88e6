// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Arrays;

/** A growing list of half-open intervals: start, end, start, end. Joins adjacent ones. */
public final class Spans {
  private long[] bounds = new long[2];
  private int size;

  public void add(long start, long end) {
    if (start >= end) {
      return;
    }
    if (size > 0 && bounds[size - 1] == start) {
      bounds[size - 1] = end;
      return;
    }
    if (size == bounds.length) {
      bounds = Arrays.copyOf(bounds, 2 * size);
    }
    bounds[size++] = start;
    bounds[size++] = end;
  }

  /**
   * Adds a part of {@code bounds}: elements {@code from} to {@code to}, excluded. Elements are
   * counted from 0 through the intervals of {@code bounds} in order.
   */
  public void addSlice(long[] bounds, long from, long to) {
    long passed = 0;
    for (int i = 0; i < bounds.length && passed < to; i += 2) {
      long length = bounds[i + 1] - bounds[i];
      long start = Math.max(from - passed, 0);
      long end = Math.min(to - passed, length);
      if (start < end) {
        add(bounds[i] + start, bounds[i] + end);
      }
      passed += length;
    }
  }

  public long[] toArray() {
    return Arrays.copyOf(bounds, size);
  }
}
