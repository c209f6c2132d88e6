// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.VerificationFailedException;

/**
 * All-to-all: every rank has a row for every other, and ends with a row from every other. Rows lie
 * in a window, so each rank writes straight into its peers' outputs.
 */
public final class AllToAllExample {
  private static final int COLUMNS = 1024;

  private AllToAllExample() {}

  public static void main(String[] args) {
    Examples.main(AllToAllExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          try (var window = comm.window(2L * ranks * COLUMNS * Integer.BYTES)) {
            var in = window.tensor(DType.I32, ranks, COLUMNS);
            var received = window.tensor(DType.I32, ranks, COLUMNS);
            for (int to = 0; to < ranks; to++) {
              in.select(0, to).fill(golden(comm.rank(), to));
            }

            comm.allToAll(in, received);

            in.fill(-1L); // The call has returned, so the input is free again.
            int[] values = new int[ranks * COLUMNS];
            received.copyTo(values);
            for (int i = 0; i < values.length; i++) {
              check(values[i], golden(i / COLUMNS, comm.rank()));
            }
          }
        });
    out.printf(
        "all-to-all: %d ranks, %d values each equal the golden ones%n", ranks, ranks * COLUMNS);
  }

  /** What rank {@code from} has for rank {@code to}. */
  private static long golden(int from, int to) {
    return 1000L * from + to;
  }

  private static void check(int found, long expected) {
    if (found != expected) {
      throw new VerificationFailedException("expected " + expected + ", found " + found);
    }
  }
}
