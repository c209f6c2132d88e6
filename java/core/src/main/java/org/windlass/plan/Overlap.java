// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import org.windlass.internal.Spans;

/**
 * The overlap of a source cell and a target cell in one dimension; {@link Grid} defines cells. It
 * consists of global intervals, and of segments that are contiguous in both local tensors.
 */
final class Overlap {
  /**
   * Global half-open intervals: start, end, start, end, ... Adjacent intervals are joined. An
   * overlap without elements has the single interval 0, 0.
   */
  final long[] bounds;

  final long extent;
  final int segments;

  /** For each segment: length, start in the source's local tensor, start in the target's. */
  private final long[] words;

  private Overlap(long[] bounds, long extent, long[] words) {
    this.bounds = extent == 0 ? new long[2] : bounds;
    this.extent = extent;
    this.words = words;
    this.segments = words.length / 3;
  }

  /**
   * Returns the overlap of two cells. Each cell is a list of intervals: start, end (excluded),
   * start, ...
   */
  static Overlap of(long[] source, long[] target) {
    Spans spans = new Spans();
    long[] words = new long[3];
    int size = 0;
    long extent = 0;
    long sourcePassed = 0;
    long targetPassed = 0;
    int s = 0;
    int t = 0;
    while (s < source.length && t < target.length) {
      long start = Math.max(source[s], target[t]);
      long end = Math.min(source[s + 1], target[t + 1]);
      if (start < end) {
        long length = end - start;
        long sourceStart = sourcePassed + start - source[s];
        long targetStart = targetPassed + start - target[t];
        if (size > 0
            && words[size - 2] + words[size - 3] == sourceStart
            && words[size - 1] + words[size - 3] == targetStart) {
          words[size - 3] += length;
        } else {
          words = size == words.length ? Arrays.copyOf(words, 2 * size) : words;
          words[size++] = length;
          words[size++] = sourceStart;
          words[size++] = targetStart;
        }
        spans.add(start, end);
        extent += length;
      }
      if (source[s + 1] <= target[t + 1]) {
        sourcePassed += source[s + 1] - source[s];
        s += 2;
      } else {
        targetPassed += target[t + 1] - target[t];
        t += 2;
      }
    }
    return new Overlap(spans.toArray(), extent, Arrays.copyOf(words, size));
  }

  /**
   * Returns a part of this overlap: elements {@code from} to {@code to}, excluded. Elements are
   * counted from 0 through the intervals in order.
   */
  Overlap slice(long from, long to) {
    Spans spans = new Spans();
    spans.addSlice(bounds, from, to);
    long[] part = new long[words.length];
    int size = 0;
    long passed = 0;
    for (int i = 0; i < segments && passed < to; i++) {
      long start = Math.max(from - passed, 0);
      long end = Math.min(to - passed, length(i));
      if (start < end) {
        part[size++] = end - start;
        part[size++] = sourceStart(i) + start;
        part[size++] = targetStart(i) + start;
      }
      passed += length(i);
    }
    return new Overlap(spans.toArray(), to - from, Arrays.copyOf(part, size));
  }

  long length(int segment) {
    return words[3 * segment];
  }

  long sourceStart(int segment) {
    return words[3 * segment + 1];
  }

  long targetStart(int segment) {
    return words[3 * segment + 2];
  }
}
