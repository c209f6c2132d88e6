// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.function.Supplier;

/**
 * What the ranks of one target cell need from one source cell: a region, and the number of ranks or
 * groups that get a copy of it. It lies on a line that {@link Shares} divides. If it is cut, the
 * cut goes through one dimension, between two rows: slices of that dimension with one index.
 */
final class Demand {
  /**
   * Size of a cache line in bits. Rows between cuts fill whole cache lines if that is precise
   * enough.
   */
  private static final int LINE = 512;

  /** Position on the line at which the demand begins. */
  final double start;

  final long size;
  final int copies;

  private final Supplier<Overlap[]> region;
  private Overlap[] overlaps;

  /** Dimension that cuts go through; -1 until it is chosen. */
  private int dim = -1;

  private long step;

  /**
   * Creates the demand for {@code copies} copies.
   *
   * @param start position on the line at which the demand begins
   * @param size elements of the region
   * @param copies how many copies of the region are sent
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

  /**
   * Returns the part of the region from row {@code from} to row {@code to}, excluded. {@link
   * Shares#END} is the end of the region.
   */
  Overlap[] part(long from, long to) {
    if (from == 0 && to == Shares.END) {
      return overlaps();
    }
    Overlap[] part = overlaps().clone();
    part[dim] = part[dim].slice(from, Math.min(to, part[dim].extent));
    return part;
  }

  /**
   * Returns the row nearest to {@code fraction} of the region. If that misses the fraction by at
   * most {@code tolerance} elements, the row begins at a whole cache line.
   *
   * @param bits size of an element in bits
   */
  long cut(double fraction, double tolerance, int bits) {
    if (dim < 0) {
      choose(tolerance, bits);
    }
    long rows = overlaps[dim].extent;
    long row = Math.round(fraction * rows / step) * step;
    return row >= rows ? Shares.END : row;
  }

  /**
   * Chooses the outermost dimension whose rows are at most twice as large as {@code tolerance}, so
   * that cuts are precise enough.
   */
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
