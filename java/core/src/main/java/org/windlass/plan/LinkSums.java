// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Adds up the bytes between every two ranks or hosts. A sum beyond 64 bits throws {@link
 * ArithmeticException}. It is a hash table of two primitive arrays, because boxing the links of a
 * large plan takes too long.
 */
final class LinkSums {
  private static final long NONE = -1;

  /** Keys of the hash table: the source in the upper 32 bits, the target in the lower. */
  private long[] ends = new long[64];

  private long[] bytes = new long[64];
  private int size;

  LinkSums() {
    Arrays.fill(ends, NONE);
  }

  void add(int source, int target, long more) {
    int at = place((long) source << 32 | target);
    bytes[at] = Math.addExact(bytes[at], more);
  }

  private int place(long key) {
    int at = (int) (key * 0x9E3779B97F4A7C15L >>> 32) & ends.length - 1;
    while (ends[at] != key) {
      if (ends[at] == NONE) {
        if (size == ends.length / 2) {
          grow();
          return place(key);
        }
        ends[at] = key;
        size++;
      } else {
        at = at + 1 & ends.length - 1;
      }
    }
    return at;
  }

  private void grow() {
    long[] oldEnds = ends;
    long[] oldBytes = bytes;
    ends = new long[2 * oldEnds.length];
    bytes = new long[ends.length];
    Arrays.fill(ends, NONE);
    size = 0;
    for (int i = 0; i < oldEnds.length; i++) {
      if (oldEnds[i] != NONE) {
        bytes[place(oldEnds[i])] = oldBytes[i];
      }
    }
  }

  List<Traffic.Link> links() {
    return IntStream.range(0, ends.length)
        .filter(at -> ends[at] != NONE)
        .mapToObj(at -> new Traffic.Link((int) (ends[at] >> 32), (int) ends[at], bytes[at]))
        .sorted(
            Comparator.comparingInt(Traffic.Link::source)
                .thenComparingInt(Traffic.Link::target))
        .toList();
  }
}
