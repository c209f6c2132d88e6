// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The data that one target cell needs from one source cell: a region of the tensor, and the number
 * of copies of it. {@link Grid} defines cells. {@link Shares} divides the demands of all target
 * cells among senders. It may cut a region in two, between two indices of one dimension, which are
 * called rows here.
 */
final class Demand {
  /** Bits of a cache line. Regions are cut at whole cache lines if that is precise enough. */
  private static final int LINE = 512;

  final double start;

  final long size;
  final int copies;

  private final Supplier<Overlap[]> region;
  private Overlap @Nullable [] overlaps;

  private int dim = -1;

  private long step;

  /**
   * Creates the demand for {@code copies} copies of a region.
   *
   * @param start distance from the start of the line that {@link Shares} divides
   * @param size number of elements of the region
   * @param region returns the region, for each dimension; called if needed
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

  /** Returns rows {@code from} to {@code to}, excluded; {@link Shares#END} is the region's end. */
  Overlap[] part(long from, long to) {
    if (from == 0 && to == Shares.END) {
      return overlaps();
    }
    Overlap[] part = overlaps().clone();
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
    long rows = overlaps()[dim].extent;
    long row = Math.round(fraction * rows / step) * step;
    return row >= rows ? Shares.END : row;
  }

  /** Chooses which dimension to cut: the outermost in which cuts are precise enough. */
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
