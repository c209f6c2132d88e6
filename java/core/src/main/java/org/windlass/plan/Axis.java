// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Divides the sending of one source cell among its members. A cell is a part of a tensor, and its
 * members are the ranks that hold it; see {@link Grid}. The data to send is laid out as a line,
 * which {@link Shares} cuts into equal shares. The line consists of the data that target cells need
 * from the source cell, in row-major order of the target cells. The length of a target cell on the
 * line is the size of its overlap with the source cell, in elements, times the number of its copies
 * on the line.
 *
 * <p>A target cell has one copy for each of its {@link HostGroups}. A copy is not on the line if
 * members copy it to themselves, or if members on its host send it ({@link Nearby}).
 *
 * <p>The methods identify a target cell by the number of elements of the source cell that are in
 * earlier target cells. Distances on the line are doubles, because elements times copies may exceed
 * 63 bits. All machines round doubles alike.
 */
final class Axis {
  /**
   * A copy of a target cell's data that is not on the line, because it is sent in another way or
   * its group does not exist.
   *
   * @param before number of elements of the source cell in earlier target cells
   * @param size number of elements that the target cell has in common with the source cell
   * @param group index of the host group that the copy is for
   */
  record Hole(long before, long size, int group) {}

  private final int width;
  private final long size;

  /** Ascending by {@link Hole#before}. Holes of one target cell are ordered by group. */
  private final Hole[] holes;

  /** Element i is the number of elements in the first i holes. */
  private final double[] sums;

  /**
   * Creates a line with holes.
   *
   * @param size number of elements of the source cell
   * @param width number of host groups of every target cell, including the groups of {@code holes}
   * @param holes the copies that are not on the line
   */
  Axis(long size, int width, List<Hole> holes) {
    this.size = size;
    this.width = width;
    this.holes = holes.toArray(new Hole[0]);
    this.sums = new double[this.holes.length + 1];
    if (this.holes.length > 1) {
      Arrays.sort(
          this.holes, Comparator.comparingLong(Hole::before).thenComparingInt(Hole::group));
    }
    for (int i = 0; i < this.holes.length; i++) {
      sums[i + 1] = sums[i] + this.holes[i].size;
    }
  }

  double length() {
    return place(size);
  }

  double place(long cell) {
    return (double) cell * width - sums[holesBefore(cell)];
  }

  int copies(long cell) {
    return width - (holesBefore(cell + 1) - holesBefore(cell));
  }

  /**
   * Returns the host groups for which copies {@code low} to {@code high} (excluded) of a cell are.
   */
  int[] groups(long cell, int low, int high) {
    int[] found = new int[high - low];
    int hole = holesBefore(cell);
    int copy = 0;
    for (int group = 0; copy < high; group++) {
      if (isOf(cell, hole) && holes[hole].group == group) {
        hole++;
        continue;
      }
      if (copy >= low) {
        found[copy - low] = group;
      }
      copy++;
    }
    return found;
  }

  int copy(long cell, int group) {
    int copy = group;
    for (int i = holesBefore(cell); isOf(cell, i); i++) {
      copy -= holes[i].group < group ? 1 : 0;
    }
    return copy;
  }

  private boolean isOf(long cell, int hole) {
    return hole < holes.length && holes[hole].before == cell;
  }

  /**
   * Returns the index of the element at {@code place}, a distance from the line's start. Near a
   * hole, it may be an earlier element of the same target cell.
   */
  long element(double place) {
    int low = 0; // number of holes in cells that begin at or before the position
    int high = holes.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (place(holes[middle].before) <= place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) {
      return (long) (place / width);
    }
    long cell = holes[low - 1].before;
    long size = holes[low - 1].size;
    double past = place - (place(cell) + (double) size * copies(cell));
    return past < 0 ? cell : cell + size + (long) (past / width);
  }

  private int holesBefore(long cell) {
    int low = 0;
    int high = holes.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (holes[middle].before < cell) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}
