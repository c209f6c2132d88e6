// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.VerificationFailedException;

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
          try (var window = comm.window((2L * ranks + 1) * COLUMNS * Integer.BYTES)) {
            var row = window.tensor(DType.I32, COLUMNS);
            var gathered = window.tensor(DType.I32, ranks, COLUMNS);
            row.copyFrom(golden(comm.rank()));

            comm.allGather(row, gathered);

            int[] values = new int[ranks * COLUMNS];
            gathered.copyTo(values);
            check(values);

            var inPlace = window.tensor(DType.I32, ranks, COLUMNS);
            var own = inPlace.select(0, comm.rank());
            own.copyFrom(golden(comm.rank()));

            comm.allGather(own, inPlace);

            inPlace.copyTo(values);
            check(values);
          }
        });
    out.printf(
        "all-gather: %d ranks, twice %d values each equal the golden ones%n",
        ranks, ranks * COLUMNS);
  }

  /** The row of one rank. */
  private static int[] golden(int rank) {
    int[] row = new int[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
      row[i] = COLUMNS * rank + i;
    }
    return row;
  }

  /** All rows, one after another, count up from 0. */
  private static void check(int[] values) {
    for (int i = 0; i < values.length; i++) {
      if (values[i] != i) {
        throw new VerificationFailedException("expected " + i + ", found " + values[i]);
      }
    }
  }
}
