// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The demand of the ranks of one target cell for one source cell, on a line that {@link Shares}
 * divides. It is a region and the number of its copies. A cut of the region goes through one
 * dimension, between two rows.
 */
final class Demand {
  /**
   * Size of a cache line in bits. Cuts fall between whole cache lines if that is precise enough.
   */
  private static final int LINE = 512;

  /** Position on the line at which the demand begins. */
  final double start;

  final long size;
  final int copies;

  private final Supplier<Overlap[]> region;
  private Overlap @Nullable [] overlaps;

  /** Dimension that cuts go through; -1 until it is chosen. */
  private int dim = -1;

  private long step;

  /**
   * Creates the demand of {@code copies} ranks.
   *
   * @param start position on the line at which the demand begins
   * @param size elements of the region
   * @param copies how many ranks get the region
   * @param region computes the overlap of each dimension
   */
  Demand(double start, long size, int copies, Supplier<Overlap[]> region) {
    this.start = start;
    this.size = size;
    this.copies = copies;
    this.region = region;
  }

  private Overlap[] overlaps() {
    if (overlaps == null) {
      overlaps = region.get();
    }
    return overlaps;
  }

  /** Returns rows {@code from} to {@code to} of the region; {@link Shares#END} is its end. */
  Overlap[] part(long from, long to) {
    if (from == 0 && to == Shares.END) {
      return overlaps();
    }
    Overlap[] part = overlaps().clone();
    part[dim] = part[dim].slice(from, Math.min(to, part[dim].extent));
    return part;
  }

  /**
   * Returns the row nearest to {@code fraction} of the region. The row begins a whole cache line if
   * that misses the fraction by at most {@code tolerance} elements.
   */
  long cut(double fraction, double tolerance, int bits) {
    if (dim < 0) {
      choose(tolerance, bits);
    }
    long rows = overlaps()[dim].extent;
    long row = Math.round(fraction * rows / step) * step;
    return row >= rows ? Shares.END : row;
  }

  /** Chooses the outermost dimension whose rows are small enough, so that rows stay whole. */
  private void choose(double tolerance, int bits) {
    long inner = size;
    Overlap[] overlaps = overlaps();
    for (int d = 0; d < overlaps.length; d++) {
      long rows = overlaps[d].extent;
      inner /= rows;
      long whole = d == overlaps.length - 1 && bits < 8 ? 8 / gcd(8, bits) : 1; // whole bytes
      double row = (double) size / rows / 2;
      boolean fine = row * whole <= tolerance;
      if (fine || dim < 0 || rows > overlaps[dim].extent) {
        long line = LINE / gcd(LINE, inner % LINE * bits);
        dim = d;
        step = row * line <= tolerance ? line : whole;
      }
      if (fine) {
        return;
      }
    }
  }

  private static long gcd(long a, long b) {
    return b == 0 ? a : gcd(b, a % b);
  }
}
