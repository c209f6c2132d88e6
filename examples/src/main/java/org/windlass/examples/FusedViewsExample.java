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
import org.windlass.redistribute.Batch;

/**
 * Views: a trainer (the first half of the ranks) holds every weight by itself, and an inference
 * fleet (the other half) holds several in one buffer. Each weight is bound to a view of the buffer,
 * so it arrives where inference reads it. docs/views.md goes through it.
 */
public final class FusedViewsExample {
  private static final long HEAD = 4;
  private static final long HIDDEN = 16;

  /** Key and value heads, and the query heads that share each pair. */
  private static final long GROUPS = 8;

  private static final long QUERIES = 2;
  private static final int EXPERTS = 6;

  private final Communicator comm;
  private final DeviceMesh trainer;
  private final DeviceMesh fleet;
  private final boolean infers;

  private FusedViewsExample(Communicator comm) {
    this.comm = comm;
    int trainers = Math.max(1, comm.size() / 2);
    trainer = DeviceMesh.of("tp", trainers);
    // A single rank is both trainer and inference.
    fleet =
        DeviceMesh.of("tp", Math.max(1, comm.size() - trainers))
            .at(comm.size() == 1 ? 0 : trainers);
    infers = fleet.contains(comm.rank());
  }

  public static void main(String[] args) {
    Examples.main(FusedViewsExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          var example = new FusedViewsExample(comm);
          example.fused();
          example.interleaved();
          example.stacked();
          example.tied();
        });
    out.printf(
        "fused-views: fused and interleaved qkv, gate_up, stacked experts and tied embeddings on %d"
            + " ranks, every row the golden one%n",
        ranks);
  }

  /** Runs a batch, and says whether this rank has something to check. */
  private boolean arrives(Batch batch) {
    try (var transfer = batch.register()) {
      transfer.run();
    }
    return infers;
  }

  private TensorSpec spec(String name, Layout layout, long... shape) {
    return TensorSpec.of(name, DType.BF16, layout, shape);
  }

  /** q, k and v are one below the other in one buffer: each is a {@code narrow} of it. */
  private void fused() {
    Layout from = trainer.layout(shard(0, HEAD));
    Layout to = fleet.layout(shard(0, HEAD));
    String[] names = {"q", "k", "v"};
    long[] heads = {GROUPS * QUERIES, GROUPS, GROUPS};
    Region[] parts = new Region[3];
    long rows = 0;
    for (int i = 0; i < 3 && infers; i++) {
      parts[i] = to.localRegion(new long[] {heads[i] * HEAD, HIDDEN}, comm.rank());
      rows += parts[i].extent(0);
    }
    Tensor qkv = Tensor.allocate(DType.BF16, rows, HIDDEN);

    Batch batch = Batch.of(comm);
    long row = 0;
    for (int i = 0; i < 3; i++) {
      TensorSpec source = spec(names[i], from, heads[i] * HEAD, HIDDEN);
      Tensor view = infers ? qkv.narrow(0, row, parts[i].extent(0)) : null;
      batch.add(
          source,
          Golden.rows(source, comm.rank()),
          spec(names[i], to, heads[i] * HEAD, HIDDEN),
          view);
      row += infers ? parts[i].extent(0) : 0;
    }

    if (arrives(batch)) {
      row = 0;
      for (int i = 0; i < 3; i++) {
        long first = parts[i].intervals(0).get(0).start();
        for (long r = 0; r < parts[i].extent(0); r++) {
          Golden.checkRow(qkv, row++, names[i], first + r);
        }
      }
    }
  }

  /**
   * In one buffer each group of heads has its queries, its key and its value one after the other:
   * {@code splitDim} makes the groups a dimension, and each of q, k and v is a {@code narrow} of
   * the heads in a group.
   */
  private void interleaved() {
    Layout from = trainer.layout(shard(0));
    Layout to = fleet.layout(shard(0));
    String[] names = {"q", "k", "v"};
    long[] perGroup = {QUERIES, 1, 1};
    long groups = infers ? to.localShape(new long[] {GROUPS}, comm.rank())[0] : 0;
    Tensor qkv = Tensor.allocate(DType.BF16, groups * (QUERIES + 2) * HEAD, HIDDEN);

    Batch batch = Batch.of(comm);
    long head = 0;
    for (int i = 0; i < 3; i++) {
      TensorSpec flat =
          spec(
              names[i],
              trainer.layout(shard(0, perGroup[i] * HEAD)),
              GROUPS * perGroup[i] * HEAD,
              HIDDEN);
      long[] shape = {GROUPS, perGroup[i], HEAD, HIDDEN};
      Tensor rows = Golden.rows(flat, comm.rank());
      Tensor source =
          rows == null
              ? null
              : rows.splitDim(0, rows.shape()[0] / (perGroup[i] * HEAD), perGroup[i], HEAD);
      Tensor view =
          infers ? qkv.splitDim(0, groups, QUERIES + 2, HEAD).narrow(1, head, perGroup[i]) : null;
      batch.add(spec(names[i], from, shape), source, spec(names[i], to, shape), view);
      head += perGroup[i];
    }

    if (arrives(batch) && groups > 0) {
      long first = to.localRegion(new long[] {GROUPS}, comm.rank()).intervals(0).get(0).start();
      long row = 0;
      for (long group = first; group < first + groups; group++) {
        for (int i = 0; i < 3; i++) {
          for (long r = 0; r < perGroup[i] * HEAD; r++) {
            Golden.checkRow(qkv, row++, names[i], group * perGroup[i] * HEAD + r);
          }
        }
      }
    }
  }

  /**
   * The trainer deals experts out whole; inference holds rows of every expert in one stack, gate
   * above up: each is a {@code select} of the stack, then a {@code narrow}.
   */
  private void stacked() {
    long width = 8;
    Layout to = fleet.layout(shard(0));
    long rows = infers ? to.localShape(new long[] {width, HIDDEN}, comm.rank())[0] : 0;
    Tensor stack = Tensor.allocate(DType.BF16, EXPERTS, 2 * rows, HIDDEN);

    Batch batch = Batch.of(comm);
    for (int e = 0; e < EXPERTS; e++) {
      Layout from = DeviceMesh.of(1).at(e % trainer.size()).layout(replicate());
      for (int half = 0; half < 2; half++) {
        String name = "experts." + e + (half == 0 ? ".gate" : ".up");
        TensorSpec source = spec(name, from, width, HIDDEN);
        Tensor view = infers ? stack.select(0, e).narrow(0, half * rows, rows) : null;
        batch.add(
            source, Golden.rows(source, comm.rank()), spec(name, to, width, HIDDEN), view);
      }
    }

    if (arrives(batch) && rows > 0) {
      long first = to.localRegion(new long[] {width}, comm.rank()).intervals(0).get(0).start();
      for (int e = 0; e < EXPERTS; e++) {
        for (long r = 0; r < rows; r++) {
          Golden.checkRow(stack.select(0, e), r, "experts." + e + ".gate", first + r);
          Golden.checkRow(stack.select(0, e), rows + r, "experts." + e + ".up", first + r);
        }
      }
    }
  }

  /** Embeddings that are the output projection too: one source, two targets. */
  private void tied() {
    TensorSpec embed = spec("embed", trainer.layout(shard(0)), 50, HIDDEN);
    TensorSpec input = spec("embed", fleet.layout(shard(0)), 50, HIDDEN);
    TensorSpec output = spec("lm_head", fleet.layout(replicate()), 50, HIDDEN);
    Tensor source = Golden.rows(embed, comm.rank());
    Tensor embedding = infers ? Tensor.allocate(DType.BF16, input.localShape(comm.rank())) : null;
    Tensor head = infers ? Tensor.allocate(DType.BF16, 50, HIDDEN) : null;

    Batch batch =
        Batch.of(comm).add(embed, source, input, embedding).add(embed, source, output, head);

    if (arrives(batch)) {
      Region.Interval rows = input.localRegion(comm.rank()).intervals(0).get(0);
      for (long row = 0; row < 50; row++) {
        Golden.checkRow(head, row, "embed", row);
        if (row >= rows.start() && row < rows.end()) {
          Golden.checkRow(embedding, row - rows.start(), "embed", row);
        }
      }
    }
  }
}
