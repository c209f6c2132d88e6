// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.windlass.layout.Placement.replicate;
import static org.windlass.layout.Placement.shard;

import java.io.PrintStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.transfer.TransferBuilder;

/**
 * Shows stacked views. Experts that are whole on a trainer's ranks arrive as parts of one stack on
 * an inference fleet. Embeddings arrive twice, as those of the input and as the output projection.
 * docs/reference/views.md explains the example.
 */
public final class StackedViewsExample {
  private static final long HIDDEN = 16;
  private static final int EXPERTS = 6;

  private final Communicator comm;
  private final DeviceMesh trainer;
  private final DeviceMesh fleet;
  private final boolean infers;

  private StackedViewsExample(Communicator comm) {
    this.comm = comm;
    Sides sides = Sides.of(comm.size());
    trainer = sides.trainer();
    fleet = sides.fleet();
    infers = sides.infers(comm);
  }

  public static void main(String[] args) {
    Examples.main(StackedViewsExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          var example = new StackedViewsExample(comm);
          example.stacked();
          example.tied();
        });
    out.printf(
        "stacked-views: stacked experts and tied embeddings on %d ranks, every row the golden one%n",
        ranks);
  }

  /**
   * Transfers experts into a stack. On the trainer, each expert is whole on one rank. Inference
   * holds rows of every expert in one stack, gate above up. Each matrix is a {@code select} of the
   * stack, then a {@code narrow}.
   */
  private void stacked() {
    long width = 8;
    Layout to = fleet.layout(shard(0));
    long rows = infers ? to.localShape(new long[] {width, HIDDEN}, comm.rank())[0] : 0;
    Tensor stack = Tensor.allocate(DType.BF16, EXPERTS, 2 * rows, HIDDEN);

    TransferBuilder builder = TransferBuilder.of(comm);
    for (int e = 0; e < EXPERTS; e++) {
      Layout from = DeviceMesh.of(1).at(e % trainer.size()).layout(replicate());
      for (int half = 0; half < 2; half++) {
        String name = "experts." + e + (half == 0 ? ".gate" : ".up");
        TensorSpec source = spec(name, from, width, HIDDEN);
        Tensor view = infers ? stack.select(0, e).narrow(0, half * rows, rows) : null;
        builder.add(
            source, Golden.rows(source, comm.rank()), spec(name, to, width, HIDDEN), view);
      }
    }

    if (arrives(builder) && rows > 0) {
      long first = to.localRegion(new long[] {width}, comm.rank()).intervals(0).get(0).start();
      for (int e = 0; e < EXPERTS; e++) {
        for (long r = 0; r < rows; r++) {
          Golden.checkRow(stack.select(0, e), r, "experts." + e + ".gate", first + r);
          Golden.checkRow(stack.select(0, e), rows + r, "experts." + e + ".up", first + r);
        }
      }
    }
  }

  /** Transfers embeddings that are also the output projection, from one source to two targets. */
  private void tied() {
    TensorSpec embed = spec("embed", trainer.layout(shard(0)), 50, HIDDEN);
    TensorSpec input = spec("embed", fleet.layout(shard(0)), 50, HIDDEN);
    TensorSpec output = spec("lm_head", fleet.layout(replicate()), 50, HIDDEN);
    Tensor source = Golden.rows(embed, comm.rank());
    Tensor embedding = infers ? Tensor.allocate(DType.BF16, input.localShape(comm.rank())) : null;
    Tensor head = infers ? Tensor.allocate(DType.BF16, 50, HIDDEN) : null;

    TransferBuilder builder =
        TransferBuilder.of(comm).add(embed, source, input, embedding)
            .add(embed, source, output, head);

    if (arrives(builder)) {
      Region.Interval rows = input.localRegion(comm.rank()).intervals(0).get(0);
      for (long row = 0; row < 50; row++) {
        Golden.checkRow(head, row, "embed", row);
        if (row >= rows.start() && row < rows.end()) {
          Golden.checkRow(embedding, row - rows.start(), "embed", row);
        }
      }
    }
  }

  /** Runs a transfer. Returns true if this rank received values to check. */
  private boolean arrives(TransferBuilder builder) {
    try (var transfer = builder.register()) {
      transfer.run();
    }
    return infers;
  }

  private TensorSpec spec(String name, Layout layout, long... shape) {
    return TensorSpec.of(name, DType.BF16, layout, shape);
  }
}
