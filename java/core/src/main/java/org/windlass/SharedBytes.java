// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Whether two tensors have a byte in common. Spans that are apart settle it; else it is the
 * question whether x_0 s_0 + x_1 s_1 + ... = d has a solution with bounded integers, which is
 * searched from the widest stride down and cut wherever the rest can't reach. For views cut from
 * one tensor that is a few steps.
 */
final class SharedBytes {
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

  /** Whether any element of {@code a} and any of {@code b} share a byte. */
  static boolean between(Tensor a, Tensor b) {
    if (!spansMeet(a, b)) {
      return false;
    }
    if (a.contiguous && b.contiguous) {
      return true;
    }
    List<long[]> terms = new ArrayList<>();
    addTerms(terms, a, true);
    addTerms(terms, b, false);
    terms.sort(Comparator.comparingLong((long[] term) -> term[0]).reversed());
    return new SharedBytes(merged(terms)).reaches(0, b.address - a.address);
  }

  /** Whether the byte ranges from first to last element meet. */
  static boolean spansMeet(Tensor a, Tensor b) {
    return a.address < b.address + b.span
        && b.address < a.address + a.span
        && a.span != 0
        && b.span != 0;
  }

  /**
   * Terms (stride in bytes, least, most) for each dimension, with the bytes of an element as one
   * more.
   */
  private static void addTerms(List<long[]> terms, Tensor tensor, boolean positive) {
    long width = tensor.dtype.bytes();
    for (int d = 0; d < tensor.shape.length; d++) {
      addTerm(terms, tensor.strides[d] * width, tensor.shape[d] - 1, positive);
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
