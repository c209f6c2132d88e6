// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The search for bytes that two tensors have in common. Spans that are apart settle it; else it is
 * the question whether x_0 s_0 + x_1 s_1 + ... = d has a solution with bounded integers, which is
 * searched from the widest stride down and cut wherever the rest can't reach. For views cut from
 * one tensor that is a few steps.
 */
public final class SharedBytes {
  /** Steps after which two tensors count as overlapping. */
  private static final int MAX_STEPS = 1_000_000;

  private final long[] stride;
  private final long[] least;
  private final long[] most;

  /** What the terms from an index on can add at least, and at most. */
  private final long[] restLeast;

  private final long[] restMost;
  private int steps;

  private SharedBytes(List<long[]> terms) {
    int n = terms.size();
    stride = new long[n];
    least = new long[n];
    most = new long[n];
    restLeast = new long[n + 1];
    restMost = new long[n + 1];
    for (int i = 0; i < n; i++) {
      stride[i] = terms.get(i)[0];
      least[i] = terms.get(i)[1];
      most[i] = terms.get(i)[2];
    }
    for (int i = n - 1; i >= 0; i--) {
      restLeast[i] = restLeast[i + 1] + stride[i] * least[i];
      restMost[i] = restMost[i + 1] + stride[i] * most[i];
    }
  }

  /**
   * Where a tensor's elements lie.
   *
   * @param address of the first
   * @param shape extents
   * @param strides in elements
   * @param width bytes of an element
   */
  public record View(long address, long[] shape, long[] strides, int width) {
    /** Bytes from the first element to the end of the last; 0 without elements. */
    public long span() {
      return Shapes.span(shape, strides) * width;
    }

    private boolean contiguous() {
      return Shapes.contiguous(shape, strides);
    }
  }

  /** Whether any element of {@code a} and any of {@code b} share a byte. */
  public static boolean between(View a, View b) {
    if (!spansMeet(a.address, a.span(), b.address, b.span())) {
      return false;
    }
    if (a.contiguous() && b.contiguous()) {
      return true;
    }
    List<long[]> terms = new ArrayList<>();
    addTerms(terms, a, true);
    addTerms(terms, b, false);
    terms.sort(Comparator.comparingLong((long[] term) -> term[0]).reversed());
    return new SharedBytes(merged(terms)).reaches(0, b.address - a.address);
  }

  /** Whether byte ranges of the given lengths, which begin at {@code a} and at {@code b}, meet. */
  public static boolean spansMeet(long a, long spanOfA, long b, long spanOfB) {
    return a < b + spanOfB && b < a + spanOfA && spanOfA != 0 && spanOfB != 0;
  }

  /**
   * Terms (stride in bytes, least, most) for each dimension, with the bytes of an element as one
   * more.
   */
  private static void addTerms(List<long[]> terms, View view, boolean positive) {
    long width = view.width;
    for (int d = 0; d < view.shape.length; d++) {
      addTerm(terms, view.strides[d] * width, view.shape[d] - 1, positive);
    }
    addTerm(terms, 1, width - 1, positive);
  }

  private static void addTerm(List<long[]> terms, long stride, long last, boolean positive) {
    if (stride != 0 && last != 0) {
      terms.add(new long[] {stride, positive ? 0 : -last, positive ? last : 0});
    }
  }

  private static List<long[]> merged(List<long[]> sorted) {
    List<long[]> merged = new ArrayList<>();
    for (long[] term : sorted) {
      long[] last = merged.isEmpty() ? null : merged.get(merged.size() - 1);
      if (last != null && last[0] == term[0]) {
        last[1] += term[1];
        last[2] += term[2];
      } else {
        merged.add(term);
      }
    }
    return merged;
  }

  private boolean reaches(int i, long distance) {
    if (distance < restLeast[i] || distance > restMost[i]) {
      return false;
    }
    if (i == stride.length || ++steps > MAX_STEPS) {
      return true;
    }
    long from = Math.max(least[i], ceilDiv(distance - restMost[i + 1], stride[i]));
    long to = Math.min(most[i], Math.floorDiv(distance - restLeast[i + 1], stride[i]));
    for (long x = from; x <= to; x++) {
      if (reaches(i + 1, distance - x * stride[i])) {
        return true;
      }
    }
    return false;
  }

  private static long ceilDiv(long a, long b) {
    return -Math.floorDiv(-a, b);
  }
}
