// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/**
 * The data that one target cell needs from one source cell: a region of the tensor, and a number of
 * copies. {@link Grid} defines cells. {@link Shares} divides the demands of all target cells among
 * senders. It may cut a region in two, between two indices of one dimension, which are called rows
 * here.
 */
final class Demand {
  /**
   * Bits of a cache line. If the tolerance permits it, regions are cut where a cache line begins.
   */
  private static final int LINE = 512;

  final double start;

  final long size;
  final int copies;

  private final Overlap[] region;

  private int dim = -1;

  private long step;

  /**
   * Creates the demand for {@code copies} copies of a region.
   *
   * @param start distance from the start of the line that {@link Shares} divides
   * @param size number of elements of the region
   * @param region the region, for each dimension
   */
  Demand(double start, long size, int copies, Overlap[] region) {
    this.start = start;
    this.size = size;
    this.copies = copies;
    this.region = region;
  }

  /**
   * Returns rows {@code from} to {@code to}, excluded, of this region or of another one with the
   * same extents. For {@code to}, {@link Shares#END} means the region's end.
   */
  Overlap[] part(Overlap[] region, long from, long to) {
    if (from == 0 && to == Shares.END) {
      return region;
    }
    Overlap[] part = region.clone();
    part[dim] = part[dim].slice(from, Math.min(to, part[dim].extent));
    return part;
  }

  /**
   * Returns the row at which {@code fraction} of the region ends, to the nearest row. If possible
   * within {@code tolerance} elements, returns a row at which a cache line begins.
   *
   * @param bits size of an element in bits
   */
  long cut(double fraction, double tolerance, int bits) {
    if (dim < 0) {
      choose(tolerance, bits);
    }
    long rows = region[dim].extent;
    long row = Math.round(fraction * rows / step) * step;
    return row >= rows ? Shares.END : row;
  }

  /**
   * Chooses the dimension to cut: the outermost dimension whose rows are small enough for the
   * tolerance.
   */
  private void choose(double tolerance, int bits) {
    long inner = size;
    for (int d = 0; d < region.length; d++) {
      long rows = region[d].extent;
      inner /= rows;
      long whole = d == region.length - 1 && bits < 8 ? 8 / gcd(8, bits) : 1; // whole bytes
      double row = (double) size / rows / 2;
      boolean fine = row * whole <= tolerance;
      if (fine || dim < 0 || rows > region[dim].extent) {
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
