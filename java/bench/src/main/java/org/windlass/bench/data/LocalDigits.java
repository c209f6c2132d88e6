// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.util.Objects;
import java.util.stream.IntStream;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;

/** Computes the {@link Digits} that select the test values of a rank's local tensor. */
public final class LocalDigits {
  private LocalDigits() {}

  /**
   * Returns the digits in iteration 0 of the elements that {@code rank} holds, in local order.
   *
   * @param shape the global shape
   */
  public static byte[] of(Layout layout, long[] shape, int rank) {
    Region region = layout.localRegion(shape, rank);
    Buffers.requireAddressable("--shape", region.numel());
    byte[] digits = new byte[(int) region.numel()];
    int term = term(layout, rank);
    for (Region.Box box : region.boxes()) {
      fill(digits, box, region.shape(), shape, term);
    }
    return digits;
  }

  private static void fill(byte[] digits, Region.Box box, long[] packed, long[] shape, int term) {
    int ndim = shape.length;
    long row = ndim == 0 ? 1 : box.length()[ndim - 1];
    long[] at = new long[ndim];
    int d;
    do {
      long global = 0;
      long local = 0;
      for (d = 0; d < ndim; d++) {
        global = global * shape[d] + box.start()[d] + at[d];
        local = local * packed[d] + box.packedStart()[d] + at[d];
      }
      for (int i = 0; i < row; i++) {
        digits[(int) local + i] = (byte) Digits.of(global + i, term);
      }
      // Advance to the next row: all dimensions except the last count up.
      for (d = ndim - 2; d >= 0 && ++at[d] == box.length()[d]; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
  }

  /** Returns the index of the term that {@code rank} holds; 0 without a partial placement. */
  static int term(Layout layout, int rank) {
    int[] coordinates = Objects.requireNonNull(layout.mesh().coordinates(rank));
    int term = 0;
    for (int m = 0; m < coordinates.length; m++) {
      if (layout.placements().get(m) instanceof Placement.Partial) {
        term = term * layout.mesh().size(m) + coordinates[m];
      }
    }
    return term;
  }

  /** Returns the number of terms of each element; 1 without a partial placement. */
  public static int terms(Layout layout) {
    return IntStream.range(0, layout.mesh().ndim())
        .filter(m -> layout.placements().get(m) instanceof Placement.Partial)
        .map(m -> layout.mesh().size(m))
        .reduce(1, Math::multiplyExact);
  }
}
