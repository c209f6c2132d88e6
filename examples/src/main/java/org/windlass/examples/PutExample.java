// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.LocalGroup;
import org.windlass.Signals;
import org.windlass.VerificationFailedException;
import org.windlass.Window;

/**
 * One-sided put and notify: every rank streams rows to the rank on its right, through an inbox of
 * two slots in that rank's window. No rank calls anything together with another: signal 0 says that
 * a row has come, and signal 1, on its way back, that a slot is free again.
 */
public final class PutExample {
  private static final int COLUMNS = 1024;
  private static final int ROWS = 100;
  private static final int HAS_COME = 0;
  private static final int HAS_BEEN_READ = 1;

  private PutExample() {}

  public static void main(String[] args) {
    Examples.main(PutExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          long bytes = 3L * COLUMNS * Integer.BYTES + Signals.bytes(2, ranks);
          try (var window = comm.window(bytes)) {
            stream(comm, window);
          }
        });
    out.printf(
        "put: %d ranks, %d rows of %d values each equal the golden ones%n", ranks, ROWS, COLUMNS);
  }

  private static void stream(Communicator comm, Window window) {
    int right = (comm.rank() + 1) % comm.size();
    int left = (comm.rank() + comm.size() - 1) % comm.size();
    var signals = window.signals(2);
    var inbox = window.tensor(DType.I32, 2, COLUMNS);
    var row = window.tensor(DType.I32, COLUMNS);
    for (int i = 1; i <= ROWS; i++) {
      DistributedTensor slot = inbox.select(0, i % 2);
      row.copyFrom(golden(comm.rank(), i));
      signals.await(right, HAS_BEEN_READ, i - 2);

      window.put(row, right, slot);
      signals.notify(right, HAS_COME, i);

      signals.await(left, HAS_COME, i);
      check(slot, golden(left, i));
      signals.notify(left, HAS_BEEN_READ, i);
    }
  }

  /** Row {@code number} of {@code rank}. */
  private static int[] golden(int rank, int number) {
    int[] row = new int[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
      row[i] = (rank * ROWS + number) * COLUMNS + i;
    }
    return row;
  }

  private static void check(DistributedTensor slot, int[] golden) {
    int[] values = new int[COLUMNS];
    slot.copyTo(values);
    for (int i = 0; i < COLUMNS; i++) {
      if (values[i] != golden[i]) {
        throw new VerificationFailedException("expected " + golden[i] + ", found " + values[i]);
      }
    }
  }
}
