// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

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
 * Shows fused views. A trainer holds q, k and v separately, and an inference fleet holds them in
 * one buffer. Each is bound to a view of the buffer, so it arrives where inference reads it.
 * docs/reference/views.md explains the example.
 */
public final class FusedViewsExample {
  private static final long HEAD = 4;
  private static final long HIDDEN = 16;

  /** Groups of heads. Each has a key head, a value head and {@link #QUERIES} query heads. */
  private static final long GROUPS = 8;

  private static final long QUERIES = 2;
  private static final String[] NAMES = {"q", "k", "v"};

  private final Communicator comm;
  private final DeviceMesh trainer;
  private final DeviceMesh fleet;
  private final boolean infers;

  private FusedViewsExample(Communicator comm) {
    this.comm = comm;
    Sides sides = Sides.of(comm.size());
    trainer = sides.trainer();
    fleet = sides.fleet();
    infers = sides.infers(comm);
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
        });
    out.printf(
        "fused-views: fused and interleaved qkv on %d ranks, every row the golden one%n", ranks);
  }

  /** Transfers q, k and v into one buffer. Each is a {@code narrow} of its rows. */
  private void fused() {
    Layout from = trainer.layout(shard(0, HEAD));
    Layout to = fleet.layout(shard(0, HEAD));
    long[] heads = {GROUPS * QUERIES, GROUPS, GROUPS};
    Region[] parts = new Region[3];
    long rows = 0;
    for (int i = 0; i < 3 && infers; i++) {
      parts[i] = to.localRegion(new long[] {heads[i] * HEAD, HIDDEN}, comm.rank());
      rows += parts[i].extent(0);
    }
    Tensor qkv = Tensor.allocate(DType.BF16, rows, HIDDEN);

    TransferBuilder builder = TransferBuilder.of(comm);
    long row = 0;
    for (int i = 0; i < 3; i++) {
      TensorSpec source = spec(NAMES[i], from, heads[i] * HEAD, HIDDEN);
      Tensor view = infers ? qkv.narrow(0, row, parts[i].extent(0)) : null;
      TensorSpec target = spec(NAMES[i], to, heads[i] * HEAD, HIDDEN);
      builder.add(source, Golden.rows(source, comm.rank()), target, view);
      row += infers ? parts[i].extent(0) : 0;
    }

    if (arrives(builder)) {
      row = 0;
      for (int i = 0; i < 3; i++) {
        long first = parts[i].intervals(0).get(0).start();
        for (long r = 0; r < parts[i].extent(0); r++) {
          Golden.checkRow(qkv, row++, NAMES[i], first + r);
        }
      }
    }
  }

  /**
   * Transfers q, k and v into a buffer in which each group of heads has its queries, key and value
   * in sequence. {@code splitDim} makes groups a dimension. Each tensor is a {@code narrow} of a
   * group.
   */
  private void interleaved() {
    Layout from = trainer.layout(shard(0));
    Layout to = fleet.layout(shard(0));
    long[] perGroup = {QUERIES, 1, 1};
    long groups = infers ? to.localShape(new long[] {GROUPS}, comm.rank())[0] : 0;
    Tensor qkv = Tensor.allocate(DType.BF16, groups * (QUERIES + 2) * HEAD, HIDDEN);

    TransferBuilder builder = TransferBuilder.of(comm);
    long head = 0;
    for (int i = 0; i < 3; i++) {
      long groupRows = perGroup[i] * HEAD;
      Layout wholeGroups = trainer.layout(shard(0, groupRows));
      TensorSpec flat = spec(NAMES[i], wholeGroups, GROUPS * groupRows, HIDDEN);
      long[] shape = {GROUPS, perGroup[i], HEAD, HIDDEN};
      Tensor rows = Golden.rows(flat, comm.rank());
      Tensor source =
          rows == null
              ? null
              : rows.splitDim(0, rows.shape()[0] / groupRows, perGroup[i], HEAD);
      Tensor view =
          infers ? qkv.splitDim(0, groups, QUERIES + 2, HEAD).narrow(1, head, perGroup[i]) : null;
      builder.add(spec(NAMES[i], from, shape), source, spec(NAMES[i], to, shape), view);
      head += perGroup[i];
    }

    if (arrives(builder) && groups > 0) {
      long first = to.localRegion(new long[] {GROUPS}, comm.rank()).intervals(0).get(0).start();
      long row = 0;
      for (long group = first; group < first + groups; group++) {
        for (int i = 0; i < 3; i++) {
          for (long r = 0; r < perGroup[i] * HEAD; r++) {
            Golden.checkRow(qkv, row++, NAMES[i], group * perGroup[i] * HEAD + r);
          }
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
