// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.windlass.plan.Plan;

/**
 * Cache of the steps of recent transfers. Its key is the text by which ranks compare their plans. A
 * transfer between the same layouts in other memory does not compute its steps again.
 */
public final class StepsMemo {
  /** Limit of the words of all cached steps, except those of the last transfer. */
  private static final long MOST_WORDS = 1 << 22;

  private record Known(List<Long> plans, int rank, TransferSteps steps) {}

  /** Cached transfers, the one used last first. Guarded by this, as are the fields below. */
  private final Deque<Known> all = new ArrayDeque<>();

  private int computed;

  /** Returns the steps of {@code rank} in a transfer of {@code plans}. */
  public synchronized TransferSteps of(List<Plan> plans, int rank) {
    List<Long> key = plans.stream().map(Plan::fingerprint).toList();
    Known found = null;
    for (Known each : all) {
      if (each.rank == rank && each.plans.equals(key)) {
        found = each;
        break;
      }
    }
    if (found == null) {
      found = new Known(key, rank, TransferSteps.of(plans, rank));
      computed++;
    } else {
      all.remove(found);
    }
    all.addFirst(found);
    long words = 0;
    for (Known each : all) {
      words += each.steps.size();
    }
    while (all.size() > 1 && words > MOST_WORDS) {
      words -= all.removeLast().steps.size();
    }
    return found.steps;
  }

  /** Returns how often steps had to be computed. */
  public synchronized int computed() {
    return computed;
  }
}
