// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One round of an all-gather: the values of one process's ranks.
 *
 * @param name name that distinguishes the all-gather from others at the store
 * @param size number of ranks that take part
 * @param isLast true if the all-gather ends with this round
 * @param limitMs milliseconds that this process waits for the end of the round
 * @param others key that exists while missing ranks may still join; null for none
 * @param own value of each rank of this process
 */
public record Round(
    String name,
    int size,
    boolean isLast,
    long limitMs,
    @Nullable Presence others,
    Map<Integer, byte[]> own) {
  static final long LONGEST_MS = 864_000_000_000L; // the longest limit: 10,000 days

  /** Returns a limit in milliseconds, from 1 to {@link #LONGEST_MS}. */
  public static long limitMs(Duration limit) {
    return limit.compareTo(Duration.ofMillis(LONGEST_MS)) > 0
        ? LONGEST_MS
        : Math.max(1, limit.toMillis());
  }

  /** A key of the store, and the value that it has while a rank may still join. */
  public record Presence(String key, byte[] value) {}
}
