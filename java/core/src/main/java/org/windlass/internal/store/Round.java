// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.Map;

/**
 * One round of an all-gather: what the ranks of one process say in it.
 *
 * @param name tells the all-gather from others at the store
 * @param size number of ranks that take part
 * @param isLast true if the all-gather ends with this round
 * @param limitMs milliseconds that this process waits for the end of the round
 * @param others key that says that the ranks which have not come may still come; null for none
 * @param own what each rank of this process says
 */
public record Round(
    String name,
    int size,
    boolean isLast,
    long limitMs,
    Presence others,
    Map<Integer, byte[]> own) {
  /** The longest limit: 10,000 days. */
  static final long LONGEST_MS = 864_000_000_000L;

  /** Returns a limit in milliseconds, from 1 to {@link #LONGEST_MS}. */
  public static long limitMs(Duration limit) {
    return limit.compareTo(Duration.ofMillis(LONGEST_MS)) > 0
        ? LONGEST_MS
        : Math.max(1, limit.toMillis());
  }

  /** A key of the store, and the value that it has for as long as somebody may still come. */
  public record Presence(String key, byte[] value) {}
}
