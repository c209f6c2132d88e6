// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DeviceMesh;
import org.windlass.Layout;
import org.windlass.Placement;
import org.windlass.Region;
import org.windlass.Target;
import org.windlass.Tensor;
import org.windlass.TensorSpec;
import org.windlass.VerificationFailedException;

/**
 * Weight sync: f32 weights of a trainer (data x tensor parallel, on the first half of the ranks)
 * become bf16 weights of an inference fleet (tensor parallel, on the other half). One weight still
 * is a sum over the data-parallel ranks, and inference holds q, k and v fused in one tensor.
 */
public final class WeightSyncExample {
  private static final Placement ROWS = Placement.shard(0);
  private static final Placement COLUMNS = Placement.shard(1);
  private static final Placement WHOLE = Placement.replicate();
  private static final Placement SUM = Placement.partial();
  private static final Set<String> FUSED = Set.of("q", "k", "v");

  /** A global weight and how it lies on either side. */
  private record Weight(TensorSpec trainer, TensorSpec inference) {
    String name() {
      return trainer.name();
    }
  }

  private WeightSyncExample() {}

  public static void main(String[] args) {
    Examples.main(WeightSyncExample::run, args);
  }

  static void run(Target target, int ranks, PrintStream out) {
    target.require();
    int trainers = Math.max(1, ranks / 2);
    int dp = trainers % 2 == 0 ? 2 : 1;
    DeviceMesh trainer = DeviceMesh.of("dp", dp, "tp", trainers / dp);
    // A single rank is both trainer and inference.
    DeviceMesh inference =
        DeviceMesh.of("tp", Math.max(1, ranks - trainers)).at(ranks == 1 ? 0 : trainers);
    Weight[] weights = {
      weight("embed", 512, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
      weight("down", 64, 256, trainer.layout(SUM, COLUMNS), inference.layout(COLUMNS)),
      weight("norm", 1, 64, trainer.layout(WHOLE, WHOLE), inference.layout(WHOLE)),
      weight("q", 64, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
      weight("k", 16, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
      weight("v", 16, 64, trainer.layout(WHOLE, ROWS), inference.layout(ROWS)),
    };

    try (var group = Communicator.local(ranks)) {
      group.run(
          comm -> {
            Map<String, Tensor> sources = sources(weights, comm.rank(), dp);
            Map<String, Tensor> targets = targets(weights, comm.rank());

            // Every rank adds every weight, in one order, and gives null where it holds nothing.
            var batch = comm.batch().wire(DType.BF16);
            for (Weight w : weights) {
              batch.add(w.trainer, sources.get(w.name()), w.inference, targets.get(w.name()));
            }
            try (var transfer = batch.register(Duration.ofSeconds(60))) {
              transfer.run(1);
            }

            for (Weight w : weights) {
              if (targets.containsKey(w.name())) {
                check(w, comm.rank(), targets.get(w.name()));
              }
            }
          });
    }
    out.printf(
        "weight-sync: %d weights from %s to %s, every value equals the golden one%n",
        weights.length, trainer, inference);
  }

  private static Weight weight(
      String name, long rows, long columns, Layout trainer, Layout inference) {
    return new Weight(
        TensorSpec.of(name, DType.F32, trainer, rows, columns),
        TensorSpec.of(name, DType.BF16, inference, rows, columns));
  }

  /** The part of a tensor that a rank holds; empty if it holds none. */
  private static Optional<Region> held(TensorSpec spec, int rank) {
    return spec.layout().mesh().contains(rank)
        ? Optional.of(spec.layout().localRegion(spec.extents(), rank))
        : Optional.empty();
  }

  private static Map<String, Tensor> sources(Weight[] weights, int rank, int dp) {
    Map<String, Tensor> sources = new LinkedHashMap<>();
    for (Weight w : weights) {
      held(w.trainer, rank)
          .ifPresent(
              region -> {
                int terms = w.trainer.layout().hasPartial() ? dp : 1;
                Tensor source = Tensor.allocate(DType.F32, region.shape());
                source.copyFrom(golden(w.name(), region, 1f / terms));
                sources.put(w.name(), source);
              });
    }
    return sources;
  }

  private static Map<String, Tensor> targets(Weight[] weights, int rank) {
    Map<String, Tensor> targets = new LinkedHashMap<>();
    long fusedRows = 0;
    for (Weight w : weights) {
      if (FUSED.contains(w.name())) {
        fusedRows += held(w.inference, rank).map(region -> region.extent(0)).orElse(0L);
      } else {
        held(w.inference, rank)
            .ifPresent(
                region -> targets.put(w.name(), Tensor.allocate(DType.BF16, region.shape())));
      }
    }
    // q, k and v are views of one tensor, so they arrive where inference reads them.
    Tensor qkv = Tensor.allocate(DType.BF16, fusedRows, 64);
    long row = 0;
    for (Weight w : weights) {
      if (FUSED.contains(w.name()) && targets.containsKey("embed")) {
        long rows = held(w.inference, rank).orElseThrow().extent(0);
        targets.put(w.name(), qkv.narrow(0, row, rows));
        row += rows;
      }
    }
    return targets;
  }

  private static void check(Weight w, int rank, Tensor target) {
    float[] expected = golden(w.name(), held(w.inference, rank).orElseThrow(), 1f);
    float[] found = new float[expected.length];
    Tensor.allocate(DType.F32, target.shape()).copyFrom(target).copyTo(found);
    for (int i = 0; i < found.length; i++) {
      if (found[i] != expected[i]) {
        throw new VerificationFailedException(
            w.name() + " on rank " + rank + ": expected " + expected[i] + ", found " + found[i]);
      }
    }
  }

  /**
   * The values of a region of a weight: whole numbers up to 64, which bf16 holds exactly, times
   * scale.
   */
  private static float[] golden(String name, Region region, float scale) {
    float[] values = new float[(int) region.numel()];
    Region.Interval rows = region.intervals(0).get(0);
    Region.Interval columns = region.intervals(1).get(0);
    int next = 0;
    for (long row = rows.start(); row < rows.end(); row++) {
      for (long column = columns.start(); column < columns.end(); column++) {
        values[next++] = (Math.floorMod(name.hashCode() + 31 * row + 7 * column, 128) - 64) * scale;
      }
    }
    return values;
  }
}
