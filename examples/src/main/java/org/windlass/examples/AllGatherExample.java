// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;

/**
 * Shows an all-gather: every rank contributes one row, and all ranks end with all rows. The first
 * call reads a separate tensor. The second call is in place: a rank's row is already at its final
 * position.
 */
public final class AllGatherExample {
  private static final int COLUMNS = 1024;

  private AllGatherExample() {}

  public static void main(String[] args) {
    Examples.main(AllGatherExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          try (var window = comm.window((2L * ranks + 1) * COLUMNS * Float.BYTES)) {
            var row = window.tensor(DType.F32, COLUMNS);
            var gathered = window.tensor(DType.F32, ranks, COLUMNS);
            int first = COLUMNS * comm.rank();
            Golden.fill(row, i -> first + i);

            comm.allGather(row, gathered);

            Golden.check(gathered, i -> i); // All rows together count up from 0.

            var inPlace = window.tensor(DType.F32, ranks, COLUMNS);
            var own = inPlace.select(0, comm.rank());
            Golden.fill(own, i -> first + i);

            comm.allGather(own, inPlace);

            Golden.check(inPlace, i -> i);
          }
        });
    out.printf(
        "all-gather: %d ranks, twice %d values each equal the golden ones%n",
        ranks, ranks * COLUMNS);
  }
}
