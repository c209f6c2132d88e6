// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Signals;
import org.windlass.Window;

/**
 * Shows put and notify. Every rank streams rows to the rank on its right, through an inbox of two
 * slots in that rank's window. No call is collective. Signal 0 reports that a row has arrived.
 * Signal 1, in the other direction, reports that a slot is free again.
 */
public final class PutNotifyExample {
  private static final int COLUMNS = 1024;
  private static final int ROWS = 100;
  private static final int HAS_COME = 0;
  private static final int HAS_BEEN_READ = 1;

  private PutNotifyExample() {}

  public static void main(String[] args) {
    Examples.main(PutNotifyExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          long bytes = 3L * COLUMNS * Float.BYTES + Signals.bytes(2, ranks);
          try (var window = comm.window(bytes)) {
            stream(comm, window);
          }
        });
    out.printf(
        "put-notify: %d ranks, %d rows of %d values each equal the golden ones%n",
        ranks, ROWS, COLUMNS);
  }

  private static void stream(Communicator comm, Window window) {
    int right = (comm.rank() + 1) % comm.size();
    int left = (comm.rank() + comm.size() - 1) % comm.size();
    var signals = window.signals(2);
    var inbox = window.tensor(DType.F32, 2, COLUMNS);
    var row = window.tensor(DType.F32, COLUMNS);
    for (int number = 1; number <= ROWS; number++) {
      int first = first(comm.rank(), number);
      Golden.fill(row, i -> first + i);
      var slot = inbox.select(0, number % 2);
      signals.await(right, HAS_BEEN_READ, number - 2);

      window.put(row, right, slot);
      signals.notify(right, HAS_COME, number);

      signals.await(left, HAS_COME, number);
      int golden = first(left, number);
      Golden.check(slot, i -> golden + i);
      signals.notify(left, HAS_BEEN_READ, number);
    }
  }

  /**
   * Returns the first value of row {@code number} of {@code rank}. The others count up from it.
   */
  private static int first(int rank, int number) {
    return (rank * ROWS + number) * COLUMNS;
  }
}
