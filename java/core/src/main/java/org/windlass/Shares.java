// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Comparator;

/**
 * How the members of one source cell share the sending of it. All that targets need from the cell
 * lies on one axis: target cells in row-major order, each once for every target member, each as
 * long as its overlap. What is served from nearer is taken out (members copy what they need
 * themselves, and serve ranks of their hosts: {@link Nearby}); the rest falls to the members in
 * equal stretches, each piece to the member in whose stretch it begins. So members send the same
 * amount to within one piece, whatever the pieces, and who sends a piece is known from its place on
 * the axis alone.
 *
 * <p>Lengths are right-shifted where elements times ranks would exceed 62 bits.
 */
final class Shares {
  /** Stands for the end of the last stretch. */
  static final long END = Long.MAX_VALUE;

  private final int members;
  private final int shift;
  private final long total;

  /** Axis places of what is served from nearer, ascending. */
  private final long[] holes;

  /** Length of the first i holes. */
  private final long[] holeSums;

  /**
   * @param size elements of the cell
   * @param targets target members of every target cell
   * @param holes place on the axis and length of each piece that is served from nearer
   */
  Shares(long size, int members, int targets, long[][] holes) {
    this.members = members;
    this.shift = shift(size, members, targets);
    Arrays.sort(holes, Comparator.comparingLong(hole -> hole[0]));
    this.holes = new long[holes.length];
    this.holeSums = new long[holes.length + 1];
    for (int i = 0; i < holes.length; i++) {
      this.holes[i] = holes[i][0];
      this.holeSums[i + 1] = holeSums[i] + holes[i][1];
    }
    this.total = (size >> shift) * targets - holeSums[holes.length];
  }

  static int shift(long size, int members, int targets) {
    return Math.max(0, bits(size) + bits(members) + bits(targets) - 62);
  }

  int shift() {
    return shift;
  }

  /** The member in whose stretch {@code place} lies. */
  int memberAt(long place) {
    if (total == 0) {
      return 0;
    }
    int at = Arrays.binarySearch(holes, place);
    int passed = at >= 0 ? firstEqual(at) : -at - 1;
    return (int) Math.min(members - 1, (place - holeSums[passed]) * members / total);
  }

  /** Where the stretch of {@code member} begins; {@link #END} for one past the last. */
  long start(int member) {
    if (member == 0) {
      return 0;
    }
    if (member == members || total == 0) {
      return END;
    }
    long filled = (member * total + members - 1) / members;
    int low = 0;
    int high = holes.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (filled + holeSums[middle] <= holes[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return filled + holeSums[low];
  }

  private int firstEqual(int at) {
    int first = at;
    while (first > 0 && holes[first - 1] == holes[at]) {
      first--;
    }
    return first;
  }

  private static int bits(long value) {
    return 64 - Long.numberOfLeadingZeros(value);
  }
}
