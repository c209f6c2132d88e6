// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Signals;

public final class PutAndNotify {
  private static final int ROWS = 100;
  private static final int COLUMNS = 1024;
  private static final int HAS_COME = 0; // number of the newest row in the inbox
  private static final int HAS_BEEN_READ = 1; // number of the last row that was read

  public static void main(String[] args) {
    try (var group = LocalGroup.of(4)) {
      group.run(PutAndNotify::stream);
    }
    System.out.println(ROWS + " rows came through each inbox");
  }

  private static void stream(Communicator comm) {
    int right = (comm.rank() + 1) % comm.size();
    int left = (comm.rank() + comm.size() - 1) % comm.size();
    long bytes = 3L * COLUMNS * Float.BYTES + Signals.bytes(2, comm.size());
    try (var window = comm.window(bytes)) {
      var signals = window.signals(2);
      var inbox = window.tensor(DType.F32, 2, COLUMNS); // two slots
      var row = window.tensor(DType.F32, COLUMNS);
      for (int number = 1; number <= ROWS; number++) {
        row.fill(1000 * comm.rank() + number);
        var slot = inbox.select(0, number % 2);
        signals.await(right, HAS_BEEN_READ, number - 2); // the slot is free

        window.put(row, right, slot);
        signals.notify(right, HAS_COME, number);

        signals.await(left, HAS_COME, number);
        if (slot.getDouble(COLUMNS - 1) != 1000 * left + number) {
          throw new AssertionError("row " + number + ": " + slot.getDouble(COLUMNS - 1));
        }
        signals.notify(left, HAS_BEEN_READ, number);
      }
      comm.barrier();
    }
  }
}
