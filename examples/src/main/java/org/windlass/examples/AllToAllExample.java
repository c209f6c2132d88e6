// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;

/**
 * Shows an all-to-all: every rank has a row for every other, and ends with a row from every other.
 * Rows lie in a window, so each rank writes directly into its peers' outputs.
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
          try (var window = comm.window(2L * ranks * COLUMNS * Float.BYTES)) {
            var in = window.tensor(DType.F32, ranks, COLUMNS);
            var received = window.tensor(DType.F32, ranks, COLUMNS);
            Golden.fill(in, i -> value(comm.rank(), i / COLUMNS));

            comm.allToAll(in, received);

            in.fill(-1); // The call has returned, so the input is free again.
            Golden.check(received, i -> value(i / COLUMNS, comm.rank()));
          }
        });
    out.printf(
        "all-to-all: %d ranks, %d values each equal the golden ones%n", ranks, ranks * COLUMNS);
  }

  /** Returns the value that rank {@code from} sends to rank {@code to}. */
  private static int value(int from, int to) {
    return 1000 * from + to;
  }
}
