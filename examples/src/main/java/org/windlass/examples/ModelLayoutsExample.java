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
 * Shows layouts that models need: fewer KV heads than tensor parallel ranks, a padded vocabulary,
 * pipeline stages, and f8 weights with block scales. The first half of the ranks is a trainer, and
 * the other half an inference fleet. docs/reference/views.md explains the example.
 */
public final class ModelLayoutsExample {
  private static final long HIDDEN = 8;

  private final Communicator comm;
  private final DeviceMesh trainer;
  private final DeviceMesh fleet;
  private final TransferBuilder builder;

  private ModelLayoutsExample(Communicator comm) {
    this.comm = comm;
    Sides sides = Sides.of(comm.size());
    trainer = sides.trainer();
    fleet = sides.fleet();
    builder = TransferBuilder.of(comm);
  }

  public static void main(String[] args) {
    Examples.main(ModelLayoutsExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          var example = new ModelLayoutsExample(comm);
          Runnable[] checks = {
            example.kvHeads(), example.vocabulary(), example.stages(), example.blockScales()
          };
          try (var transfer = example.builder.register()) {
            transfer.run();
          }
          for (Runnable check : checks) {
            check.run();
          }
        });
    out.printf(
        "model-layouts: replicated KV heads, a padded vocabulary, pipeline stages and block scales"
            + " on %d ranks, every row the golden one%n",
        ranks);
  }

  /** Adds a matrix of golden rows. Returns a check of this rank's rows and padding. */
  private Runnable add(TensorSpec from, TensorSpec to) {
    int rank = comm.rank();
    boolean arrives = to.layout().mesh().contains(rank);
    Tensor target = arrives ? Tensor.allocate(to.dtype(), to.localShape(rank)).fill(1) : null;
    builder.add(from, Golden.rows(from, rank), to, target);
    return () -> {
      if (arrives) {
        Region.Interval rows = to.localRegion(rank).intervals(0).get(0);
        for (long row = 0; row < target.shape()[0]; row++) {
          if (row < rows.length()) {
            Golden.checkRow(target, row, from.name(), rows.start() + row);
          } else {
            Golden.checkZeroRow(target, row);
          }
        }
      }
    };
  }

  /** Transfers two KV heads. Each head is whole on {@code tp / 2} ranks. */
  private Runnable kvHeads() {
    int kv = fleet.size() % 2 == 0 ? 2 : 1;
    DeviceMesh heads = DeviceMesh.of("kv", kv, "rep", fleet.size() / kv).at(fleet.lowestRank());
    Layout to = heads.layout(shard(0), replicate());
    return add(
        TensorSpec.of("k", DType.BF16, trainer.layout(shard(0)), 2 * 4, HIDDEN),
        TensorSpec.of("k", DType.BF16, to, 2 * 4, HIDDEN));
  }

  /**
   * Transfers a vocabulary. Each side pads it to a multiple of its ranks, and only the words move.
   */
  private Runnable vocabulary() {
    long words = 250;
    return add(
        TensorSpec.of("embed", DType.BF16, trainer.layout(shard(0)), words, HIDDEN)
            .padded(roundedUp(words, 64L * trainer.size()), HIDDEN),
        TensorSpec.of("embed", DType.BF16, fleet.layout(shard(0)), words, HIDDEN)
            .padded(roundedUp(words, 32L * fleet.size()), HIDDEN));
  }

  private static long roundedUp(long count, long unit) {
    return (count + unit - 1) / unit * unit;
  }

  /** Transfers pipeline stages. The layers of a stage have a mesh of only that stage's ranks. */
  private Runnable stages() {
    int stages = trainer.size() % 2 == 0 ? 2 : 1;
    int stageRanks = trainer.size() / stages;
    Runnable[] checks = new Runnable[4];
    for (int layer = 0; layer < checks.length; layer++) {
      int stage = layer * stages / checks.length;
      DeviceMesh mesh = DeviceMesh.of("tp", stageRanks).at(stage * stageRanks);
      String name = "layers." + layer + ".up";
      checks[layer] =
          add(
              TensorSpec.of(name, DType.BF16, mesh.layout(shard(0)), 24, HIDDEN),
              TensorSpec.of(name, DType.BF16, fleet.layout(shard(0)), 24, HIDDEN));
    }
    return () -> {
      for (Runnable check : checks) {
        check.run();
      }
    };
  }

  /**
   * Transfers weights with a scale for every 128 rows. Weights are cut at multiples of 128 rows and
   * scales by one row, so they stay together.
   */
  private Runnable blockScales() {
    Runnable weight =
        add(
            TensorSpec.of("w", DType.F8E4M3, trainer.layout(shard(0, 128)), 600, HIDDEN),
            TensorSpec.of("w", DType.F8E4M3, fleet.layout(shard(0, 128)), 600, HIDDEN));
    Runnable scales =
        add(
            TensorSpec.of("w_scale", DType.F32, trainer.layout(shard(0, 1)), 5, 1),
            TensorSpec.of("w_scale", DType.F32, fleet.layout(shard(0, 1)), 5, 1));
    return () -> {
      weight.run();
      scales.run();
    };
  }
}
