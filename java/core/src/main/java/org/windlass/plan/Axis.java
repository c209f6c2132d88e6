// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * A line of all that targets need from one source cell and that its members share in sending:
 * target cells in row-major order, each as long as its overlap times the copies of it that are
 * shared: one for each of the {@link HostGroups}. Copies that are served from nearer are left out:
 * members copy what they need themselves, and serve ranks of their hosts ({@link Nearby}).
 *
 * <p>A target cell is named by the elements of the source cell in lesser target cells. Places are
 * doubles, which every machine rounds alike: elements times copies may exceed 63 bits.
 */
final class Axis {
  /** A copy that is served from nearer, or that nobody needs. */
  record Hole(long before, long size, int group) {}

  private static final long[] NONE = {};
  private static final int[] NO_GROUPS = {};
  private static final double[] NO_SUMS = {0};

  private final int width;
  private final long size;

  /** Of each hole, ascending; then by group. */
  private final long[] before;

  private final long[] sizes;
  private final int[] groups;

  /** Length of the first i holes. */
  private final double[] sums;

  /**
   * A line with holes.
   *
   * @param size elements of the source cell
   * @param width groups of every target cell, those among them that it lacks and {@code holes} say
   */
  Axis(long size, int width, List<Hole> holes) {
    this.size = size;
    this.width = width;
    if (holes.isEmpty()) {
      this.before = NONE;
      this.sizes = NONE;
      this.groups = NO_GROUPS;
      this.sums = NO_SUMS;
      return;
    }
    Hole[] sorted = holes.toArray(new Hole[0]);
    Arrays.sort(sorted, Comparator.comparingLong(Hole::before).thenComparingInt(Hole::group));
    this.before = new long[sorted.length];
    this.sizes = new long[sorted.length];
    this.groups = new int[sorted.length];
    this.sums = new double[sorted.length + 1];
    for (int i = 0; i < sorted.length; i++) {
      before[i] = sorted[i].before();
      sizes[i] = sorted[i].size();
      groups[i] = sorted[i].group();
      sums[i + 1] = sums[i] + sorted[i].size();
    }
  }

  /** How long the line is. */
  double length() {
    return place(size);
  }

  /** Where a target cell begins. */
  double place(long cell) {
    return (double) cell * width - sums[holesBefore(cell)];
  }

  /** How many copies of a target cell are on the line. */
  int copies(long cell) {
    return width - (holesBefore(cell + 1) - holesBefore(cell));
  }

  /** The group that gets copy {@code copy} of a target cell. */
  int group(long cell, int copy) {
    int group = copy;
    for (int i = holesBefore(cell); i < before.length && before[i] == cell; i++) {
      group += groups[i] <= group ? 1 : 0;
    }
    return group;
  }

  /** Which copy of a target cell {@code group} gets. */
  int copy(long cell, int group) {
    int copy = group;
    for (int i = holesBefore(cell); i < before.length && before[i] == cell; i++) {
      copy -= groups[i] < group ? 1 : 0;
    }
    return copy;
  }

  /** An element of the source cell, counted by target cells, at or before {@code place}. */
  long element(double place) {
    int low = 0; // holes of cells that begin at or before the place
    int high = before.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (place(before[middle]) <= place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) {
      return (long) (place / width);
    }
    long cell = before[low - 1];
    double past = place - (place(cell) + (double) sizes[low - 1] * copies(cell));
    return past < 0 ? cell : cell + sizes[low - 1] + (long) (past / width);
  }

  private int holesBefore(long cell) {
    int low = 0;
    int high = before.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (before[middle] < cell) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
