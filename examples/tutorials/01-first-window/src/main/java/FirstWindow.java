// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;

public final class FirstWindow {
  public static void main(String[] args) {
    try (var group = LocalGroup.of(4)) { // four ranks, threads of this JVM
      group.run(FirstWindow::readNeighbour); // once for each rank
    }
  }

  static void readNeighbour(Communicator comm) {
    try (var window = comm.window(4096); // all ranks make it: 4 KiB on each, zeroed
        var copy = Tensor.allocate(DType.F32, 8)) {
      var row = window.tensor(DType.F32, 8); // at the same offset on every rank
      row.fill(10 * comm.rank());
      comm.barrier(); // all rows are filled

      int left = (comm.rank() + comm.size() - 1) % comm.size();
      window.get(copy, left, row); // reads the row of rank left
      comm.barrier(); // all rows have been read: now a rank may leave

      System.out.println(comm + " reads " + copy.getDouble(7) + " of rank " + left);
    }
  }
}
