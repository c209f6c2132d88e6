// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;

/**
 * All-gather: every rank contributes one row, and all ranks end with all rows. Once from a tensor
 * of its own, once in place, where a rank's row lies at its place among the others from the start.
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

            Golden.check(gathered, i -> i); // All rows, one after another, count up from 0.

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
