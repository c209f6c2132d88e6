// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.plan.Plan;

/**
 * Cache of the steps of recent transfers. If a transfer has the same plans as an earlier one, but
 * other memory, its steps are not computed again.
 */
public final class StepsMemo {
  /** Largest number of words of all cached steps, without the words of the last transfer. */
  private static final long MOST_WORDS = 1 << 22;

  private record Key(List<Long> plans, int rank) {}

  /** Cached transfers, the last used one at the end. Guarded by this, as is the next field. */
  private final Map<Key, TransferSteps> all = new LinkedHashMap<>(16, 0.75f, true);

  private int computed;

  public synchronized TransferSteps of(List<Plan> plans, int rank) {
    Key key = new Key(plans.stream().map(Plan::fingerprint).toList(), rank);
    TransferSteps found =
        all.computeIfAbsent(
            key,
            absent -> {
              computed++;
              return TransferSteps.of(plans, rank);
            });
    long words = all.values().stream().mapToLong(TransferSteps::size).sum();
    Iterator<TransferSteps> eldest = all.values().iterator();
    while (all.size() > 1 && words > MOST_WORDS) {
      words -= eldest.next().size();
      eldest.remove();
    }
    return found;
  }

  /** Returns how often steps were computed because the cache did not have them. */
  public synchronized int computed() {
    return computed;
  }
}
