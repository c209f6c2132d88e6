// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.time.Duration;
import java.util.Random;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.plan.TransferMode;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/** A redistribution of a random program on one rank, and what plain Java says that it gives. */
record RedistributionStep(Step step, Communicator comm) {
  private static final long ROWS = 37;
  private static final long COLUMNS = 29;

  /** A mesh of one dimension over some of the ranks, with one placement. */
  private record Side(int first, int ranks, String placement) {
    static Side random(int of, Random random, boolean mayBePartial) {
      int ranks = 1 + random.nextInt(of);
      String[] placements = {"S0", "S1", "R", "P"};
      return new Side(
          random.nextInt(of - ranks + 1), ranks, placements[random.nextInt(mayBePartial ? 4 : 3)]);
    }

    Layout layout() {
      return Layout.parse(ranks + "@" + first + ":" + placement);
    }

    boolean holds(int rank) {
      return rank >= first && rank < first + ranks;
    }

    /** First row, rows, first column, columns. */
    long[] box(int rank) {
      long[] box = {0, ROWS, 0, COLUMNS};
      if (placement.startsWith("S")) {
        int dim = placement.charAt(1) - '0';
        long piece = (box[2 * dim + 1] + ranks - 1) / ranks;
        long start = Math.min(box[2 * dim + 1], piece * (rank - first));
        box[2 * dim + 1] = Math.min(box[2 * dim + 1] - start, piece);
        box[2 * dim] = start;
      }
      return box;
    }

    Tensor tensor(int rank, DType dtype) {
      long[] box = box(rank);
      return holds(rank) ? Tensor.allocate(dtype, box[1], box[3]) : null;
    }

    /** What a rank holds at an index of its own piece. */
    double value(int rank, long index, long version) {
      long[] box = box(rank);
      long row = box[0] + index / box[3];
      long column = box[2] + index % box[3];
      double whole = Math.floorMod(version + 31 * row + 7 * column, 13);
      if (!placement.equals("P")) {
        return whole;
      }
      return rank == first ? whole - (ranks - 1) : 1;
    }
  }

  /** A transfer of one run. */
  void transfer() {
    Random random = new Random(step.seed());
    Side from = Side.random(comm.size(), random, true);
    Side to = Side.random(comm.size(), random, false);
    TransferMode mode = TransferMode.values()[random.nextInt(TransferMode.values().length)];
    int rank = comm.rank();
    Tensor source = from.tensor(rank, DType.F32);
    Tensor target = to.tensor(rank, DType.BF16);
    if (source != null) {
      Step.write(source, i -> from.value(rank, i, step.number()));
    }
    TransferBuilder builder =
        TransferBuilder.of(comm).defaultMode(mode).defaultBucketBytes(1 + random.nextInt(4096));
    long[] shape = {ROWS, COLUMNS};
    builder.add(
        TensorSpec.of("t", DType.F32, from.layout(), shape),
        source,
        TensorSpec.of("t", DType.BF16, to.layout(), shape),
        target);
    try (Transfer transfer = builder.register()) {
      transfer.run(1);
    }
    if (target != null) {
      step.check(comm, target, i -> to.value(rank, i, step.number()));
    }
  }

  /** A link of three versions. */
  void link() {
    Random random = new Random(step.seed());
    int n = comm.size();
    Side from = Side.random(n, random, true);
    Side to = Side.random(n, random, false);
    boolean inPlace = random.nextInt(3) == 0;
    boolean checked = random.nextBoolean();
    int rank = comm.rank();
    DeviceMesh senders = from.layout().mesh();
    DeviceMesh receivers = to.layout().mesh();
    try (Link link = Link.open(comm, "weights-" + step.number(), senders, receivers)) {
      if (link == null) {
        return;
      }
      LinkTransferBuilder builder = link.transferBuilder();
      builder = inPlace ? builder.inPlace() : builder;
      builder = checked ? builder.checksums() : builder;
      Tensor source = from.tensor(rank, DType.F32);
      long[] shape = {ROWS, COLUMNS};
      if (link.sends()) {
        builder.add("w", shape, source, from.layout());
      }
      if (link.receives()) {
        builder.into("w", shape, to.tensor(rank, DType.F32), to.layout());
      }
      try (LinkTransfer transfer = builder.register()) {
        for (long version = 1; version <= 3; version++) {
          long now = version;
          if (source != null) {
            Step.write(source, i -> from.value(rank, i, now));
          }
          if (link.sends()) {
            transfer.send(version);
          } else {
            transfer.receive(Duration.ofSeconds(30));
          }
          if (link.receives()) {
            step.check(comm, transfer.tensor("w"), i -> to.value(rank, i, now));
          }
        }
      }
    }
  }
}
