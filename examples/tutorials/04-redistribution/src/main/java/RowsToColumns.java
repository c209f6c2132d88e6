// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.transfer.TransferBuilder;

public final class RowsToColumns {
  public static void main(String[] args) {
    // Name, dtype, layout and global shape, before and after.
    var rows = TensorSpec.of("weight", DType.F32, Layout.parse("4:S0"), 8, 4);
    var columns = TensorSpec.of("weight", DType.F32, Layout.parse("4@0:S1"), 8, 4);
    try (var group = LocalGroup.of(4)) {
      group.run(comm -> turn(comm, rows, columns));
    }
  }

  private static void turn(Communicator comm, TensorSpec rows, TensorSpec columns) {
    int rank = comm.rank();
    try (var before = Tensor.allocate(DType.F32, rows.localShape(rank)); // 2 x 4
        var after = Tensor.allocate(DType.F32, columns.localShape(rank)); // 8 x 1
        var transfer = TransferBuilder.of(comm).add(rows, before, columns, after).register()) {
      for (int run = 1; run <= 3; run++) {
        before.fill(10 * run + rank);

        transfer.run(); // as often as you want, by one plan

        System.out.println(comm + " has " + after.getDouble(7, 0) + " in row 7");
      }
    }
  }
}
