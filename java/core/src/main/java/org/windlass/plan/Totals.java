// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;

/**
 * The sums of a plan; see {@link Plan#totals}.
 *
 * @param sentBytes as {@link Traffic#sentBytes}
 * @param localBytes as {@link Traffic#localBytes}
 * @param reduceBytes as {@link Traffic#reduceBytes}
 * @param buckets how many {@link Plan#buckets} there are
 */
public record Totals(long sentBytes, long localBytes, long reduceBytes, long buckets) {
  /** Bytes of routes, added up; they throw {@link ArithmeticException} beyond 64 bits. */
  static final class Sums {
    long sent;
    long local;
    long reduced;

    /**
     * Adds those of a route.
     *
     * @param readers who read its terms to reduce them
     */
    void add(Route route, List<Integer> readers) {
      long bytes = route.bytes();
      for (int target : route.targets()) {
        if (target == route.source()) {
          local = Math.addExact(local, bytes);
        } else {
          sent = Math.addExact(sent, bytes);
        }
      }
      if (!readers.isEmpty()) {
        long read = Math.multiplyExact(readers.size(), route.reduceBytes());
        reduced = Math.addExact(reduced, read);
      }
    }
  }
}
