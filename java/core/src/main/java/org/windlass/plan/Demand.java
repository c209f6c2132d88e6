// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.function.Supplier;

/**
 * The demand of the ranks of one target cell for one source cell, on a line that {@link Shares}
 * divides: a region, and how many copies of it. A cut of the region goes through one of its
 * dimensions, and stands at a number of rows.
 */
final class Demand {
  /** A line of the caches, in bits: cuts stand at whole lines where that is fine enough. */
  private static final int LINE = 512;

  /** Where the demand begins on the line. */
  final double start;

  final long size;
  final int copies;

  private final Supplier<Overlap[]> region;
  private Overlap[] overlaps;

  /** How the region is cut; a dimension of -1 is yet unknown. */
  private int dim = -1;

  private long step;

  /**
   * The demand of {@code copies} ranks.
   *
   * @param size elements of the region
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

  /** Rows {@code from} to {@code to} of the region; {@link Shares#END} is its end. */
  Overlap[] part(long from, long to) {
    if (from == 0 && to == Shares.END) {
      return overlaps();
    }
    Overlap[] part = overlaps().clone();
    part[dim] = part[dim].slice(from, Math.min(to, part[dim].extent));
    return part;
  }

  /**
   * The row nearest to {@code fraction} of the region, at a whole line of the caches where that
   * misses by no more than {@code tolerance} elements.
   */
  long cut(double fraction, double tolerance, int bits) {
    if (dim < 0) {
      choose(tolerance, bits);
    }
    long rows = overlaps[dim].extent;
    long row = Math.round(fraction * rows / step) * step;
    return row >= rows ? Shares.END : row;
  }

  /** Takes the outermost dimension of rows that are fine enough, so that rows stay whole. */
  private void choose(double tolerance, int bits) {
    long inner = size;
    for (int d = 0; d < overlaps().length; d++) {
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
