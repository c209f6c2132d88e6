// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.link.Link;

/**
 * Shows weight sync from a trainer to an inference fleet, step after step. The trainer has f32
 * weights with data and tensor parallelism on the first half of the ranks. The fleet has bf16
 * weights with tensor parallelism on the other half. One weight is still a sum over the
 * data-parallel ranks. Inference holds q, k and v fused in one tensor. Each side names only its own
 * layouts.
 */
public final class WeightSyncExample {
  private static final Placement ROWS = Placement.shard(0);
  private static final Placement COLUMNS = Placement.shard(1);
  private static final Placement WHOLE = Placement.replicate();
  private static final Placement SUM = Placement.partial();
  private static final Set<String> FUSED = Set.of("q", "k", "v");
  private static final int STEPS = 3;

  /** A global weight and its layout on either side. */
  private record Weight(String name, long[] shape, Layout trainer, Layout inference) {}

  private WeightSyncExample() {}

  public static void main(String[] args) {
    Examples.main(WeightSyncExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    Sides sides = Sides.of(ranks);
    int trainers = sides.trainer().size();
    int dp = trainers % 2 == 0 ? 2 : 1;
    DeviceMesh trainer = DeviceMesh.of("dp", dp, "tp", trainers / dp);
    DeviceMesh inference = sides.fleet();
    Weight[] weights = {
      weight("embed", 512, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
      weight("down", 64, 256, trainer.layout(SUM, COLUMNS), inference.layout(COLUMNS)),
      weight("norm", 1, 64, trainer.layout(WHOLE, WHOLE), inference.layout(WHOLE)),
      weight("q", 64, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
      weight("k", 16, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
      weight("v", 16, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
    };

    group.run(
        comm -> {
          try (var link = Link.open(comm, "weights", trainer, inference)) {
            sync(link, weights, comm.rank(), dp);
          }
        });
    out.printf(
        "weight-sync: %d weights from %s to %s, %d steps, every value equals the golden one%n",
        weights.length, trainer, inference, STEPS);
  }

  private static void sync(Link link, Weight[] weights, int rank, int dp) {
    var builder = link.transferBuilder().defaultWire(DType.BF16).checksums();
    Map<String, Tensor> sources = new LinkedHashMap<>();
    if (link.sends()) {
      for (Weight w : weights) {
        sources.put(w.name, Tensor.allocate(DType.F32, w.trainer.localShape(w.shape, rank)));
        builder.add(w.name, w.shape, sources.get(w.name), w.trainer);
      }
    }
    if (link.receives()) {
      Map<String, Tensor> targets = targets(weights, rank);
      for (Weight w : weights) {
        builder.into(w.name, w.shape, targets.get(w.name), w.inference);
      }
    }
    try (var transfer = builder.register()) {
      if (link.sends()) {
        train(weights, sources, rank, dp, 0);
        transfer.checkReplicas();
      }
      for (long step = 1; step <= STEPS; step++) {
        if (link.sends()) {
          train(weights, sources, rank, dp, step);
          transfer.send(step);
        } else {
          transfer.receive(step);
        }
        if (link.receives()) {
          for (Weight w : weights) {
            Region region = w.inference.localRegion(w.shape, rank);
            Golden.check(transfer.tensor(w.name), region, golden(w, step));
          }
        }
      }
    }
  }

  private static Weight weight(
      String name, long rows, long columns, Layout trainer, Layout inference) {
    return new Weight(name, new long[] {rows, columns}, trainer, inference);
  }

  /** Writes this rank's weights after a training step: values, or one term of them. */
  private static void train(
      Weight[] weights, Map<String, Tensor> sources, int rank, int dp, long step) {
    for (Weight w : weights) {
      Region region = w.trainer.localRegion(w.shape, rank);
      int terms = w.trainer.hasPartial() ? dp : 1;
      Golden.Matrix golden = golden(w, step);
      Golden.fill(sources.get(w.name), region, (row, column) -> golden.at(row, column) / terms);
    }
  }

  private static Map<String, Tensor> targets(Weight[] weights, int rank) {
    Map<String, Tensor> targets = new LinkedHashMap<>();
    long fusedRows = 0;
    for (Weight w : weights) {
      long[] local = w.inference.localShape(w.shape, rank);
      if (FUSED.contains(w.name)) {
        fusedRows += local[0];
      } else {
        targets.put(w.name, Tensor.allocate(DType.BF16, local));
      }
    }
    // q, k and v are views of one tensor, so they arrive where inference reads them.
    Tensor qkv = Tensor.allocate(DType.BF16, fusedRows, 64);
    long row = 0;
    for (Weight w : weights) {
      if (FUSED.contains(w.name)) {
        long rows = w.inference.localShape(w.shape, rank)[0];
        targets.put(w.name, qkv.narrow(0, row, rows));
        row += rows;
      }
    }
    return targets;
  }

  /** Returns integers up to 64, which bf16 holds exactly. */
  private static Golden.Matrix golden(Weight w, long step) {
    return (row, column) ->
        Math.floorMod(w.name.hashCode() + 31 * row + 7 * column + 3 * step, 128) - 64;
  }
}
