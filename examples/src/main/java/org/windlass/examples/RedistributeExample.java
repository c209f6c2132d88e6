// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.transfer.TransferBuilder;

/**
 * Shows a redistribution of two matrices. One is sharded by rows and becomes sharded by columns.
 * The other is a sum whose terms lie on the ranks and becomes rows of that sum. Both use one
 * transfer, which is registered once and runs any number of times.
 */
public final class RedistributeExample {
  private static final int RUNS = 3;

  private RedistributeExample() {}

  public static void main(String[] args) {
    Examples.main(RedistributeExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    DeviceMesh mesh = DeviceMesh.of("tp", ranks);
    var rows = mesh.layout(Placement.shard(0));
    var columns = mesh.layout(Placement.shard(1));
    var terms = mesh.layout(Placement.partial());
    // Global names, dtypes and shapes, and how they lie on the ranks before and after.
    var weight = TensorSpec.of("weight", DType.F32, rows, 100, 60);
    var turned = TensorSpec.of("weight", DType.BF16, columns, 100, 60);
    var gradient = TensorSpec.of("gradient", DType.F32, terms, 100, 60);
    var summed = TensorSpec.of("gradient", DType.F32, rows, 100, 60);

    group.run(
        comm -> {
          int rank = comm.rank();
          var before = Tensor.allocate(DType.F32, weight.localShape(rank));
          var after = Tensor.allocate(DType.BF16, turned.localShape(rank));
          var term = Tensor.allocate(DType.F32, gradient.localShape(rank));
          var sum = Tensor.allocate(DType.F32, summed.localShape(rank));
          var builder =
              TransferBuilder.of(comm).add(weight, before, turned, after)
                  .add(gradient, term, summed, sum);

          try (var transfer = builder.register()) { // the ranks agree on a plan
            for (int run = 1; run <= RUNS; run++) {
              int step = run;
              Golden.fill(before, weight.localRegion(rank), (r, c) -> value(step, r, c));
              Golden.fill(term, gradient.localRegion(rank), (r, c) -> value(rank, r, c));

              transfer.run();

              Golden.check(after, turned.localRegion(rank), (r, c) -> value(step, r, c));
              Golden.check(sum, summed.localRegion(rank), (r, c) -> sumOfTerms(ranks, r, c));
            }
          }
        });
    out.printf(
        "redistribute: %s to %s and %s to %s, %d runs, every value equals the golden one%n",
        rows, columns, terms, rows, RUNS);
  }

  /** Returns an integer from 0 to 128, which bf16 holds exactly. */
  private static double value(long step, long row, long column) {
    return (31 * row + 7 * column + 3 * step) % 129;
  }

  private static double sumOfTerms(int ranks, long row, long column) {
    double sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
      sum += value(rank, row, column);
    }
    return sum;
  }
}
