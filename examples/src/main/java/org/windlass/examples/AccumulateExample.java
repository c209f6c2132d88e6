// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Signals;

/**
 * Shows a put that accumulates. All ranks add rows to one total in rank 0's window. They add at the
 * same time and in any order, and no addition is lost. Signals report that all additions have
 * arrived.
 */
public final class AccumulateExample {
  private static final int COLUMNS = 1024;
  private static final int ADDS = 20;
  private static final int ROOT = 0;
  private static final int HAS_ADDED = 0;

  private AccumulateExample() {}

  public static void main(String[] args) {
    Examples.main(AccumulateExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          long bytes = 2L * COLUMNS * Float.BYTES + Signals.bytes(1, ranks);
          try (var window = comm.window(bytes)) {
            var signals = window.signals(1);
            var total = window.tensor(DType.F32, COLUMNS); // the window starts zeroed
            var row = window.tensor(DType.F32, COLUMNS);
            for (int add = 1; add <= ADDS; add++) {
              int number = add;
              Golden.fill(row, i -> comm.rank() + number * i);

              window.accumulate(row, ROOT, total);
            }
            signals.notify(ROOT, HAS_ADDED, ADDS);

            if (comm.rank() == ROOT) {
              for (int peer = 0; peer < ranks; peer++) {
                signals.await(peer, HAS_ADDED, ADDS);
              }
              int sumOfRanks = ranks * (ranks - 1) / 2;
              int sumOfNumbers = ADDS * (ADDS + 1) / 2;
              // The float sum of integers is the same in any order.
              Golden.check(total, i -> ADDS * sumOfRanks + ranks * sumOfNumbers * i);
            }
          }
        });
    out.printf(
        "accumulate: %d ranks added %d rows each, %d totals equal the golden ones%n",
        ranks, ADDS, COLUMNS);
  }
}
