// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Shapes;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;
import org.windlass.testing.DistributionReference;
import org.windlass.testing.Launch;
import org.windlass.testing.OnRanks;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Ranks;

/** Links: both sides' layouts, halves and views. */
@Timeout(120)
class LinkTest {
  private static final Duration SOON = Duration.ofSeconds(30);

  /** A tensor as either side has it; each element is a small whole number, in f32 and in bf16. */
  private record Weight(String name, long[] shape, Layout from, Layout to) {
    /** The value of a global element, or a term of it. */
    double value(List<Long> index, int term, int terms, long version) {
      long mixed = name.hashCode() + 31 * version;
      for (long i : index) {
        mixed = 7 * mixed + i;
      }
      double whole = Math.floorMod(mixed, 100);
      return terms == 1 ? whole : term == 0 ? whole - (terms - 1) : 1;
    }

    /** Elements that a rank holds, row-major. */
    double[] held(Layout layout, int rank, long version) {
      List<List<Long>> dims = DistributionReference.held(layout, rank, shape);
      List<Integer> group = DistributionReference.group(layout, rank);
      List<List<Long>> indices = List.of(List.of());
      for (List<Long> dim : dims) {
        List<List<Long>> longer = new ArrayList<>();
        for (List<Long> index : indices) {
          for (long i : dim) {
            List<Long> with = new ArrayList<>(index);
            with.add(i);
            longer.add(with);
          }
        }
        indices = longer;
      }
      int term = group.indexOf(rank);
      return indices.stream().mapToDouble(i -> value(i, term, group.size(), version)).toArray();
    }

    /** In {@code window}, unless that is null. */
    Tensor part(Layout layout, int rank, DType dtype, Window window) {
      if (!layout.mesh().contains(rank)) {
        return null;
      }
      long[] local = layout.localShape(shape, rank);
      return window == null ? Tensor.allocate(dtype, local) : window.tensor(dtype, local);
    }
  }

  private static DeviceMesh side(List<Weight> weights, boolean from) {
    TreeSet<Integer> ranks = new TreeSet<>();
    weights.forEach(w -> ranks.addAll((from ? w.from : w.to).mesh().ranks()));
    return DeviceMesh.of(ranks.size()).ranks(ranks.stream().mapToInt(Integer::intValue).toArray());
  }

  private static double[] values(Tensor tensor) {
    double[] values = new double[Math.toIntExact(tensor.numel())];
    tensor.copyTo(values);
    return values;
  }

  /**
   * Sends three versions of {@code all}: every rank names those of its own sides alone, in an order
   * of its own.
   *
   * @param isWhole whether all ranks live in one process; else sums that are checked lie in a
   *     window
   */
  private static void sync(
      Communicator comm, List<Weight> all, Random random, Moved moved, boolean isWhole) {
    int rank = comm.rank();
    List<Weight> weights = new ArrayList<>(all);
    Collections.shuffle(weights, random);
    DeviceMesh senders = side(weights, true);
    DeviceMesh receivers = side(weights, false);
    try (Link link = Link.open(comm, "weights", senders, receivers)) {
      assertThat(link == null).isEqualTo(!senders.contains(rank) && !receivers.contains(rank));
      if (link == null) {
        return;
      }
      boolean inWindow = moved.hasChecksums && !isWhole;
      long bytes = weights.stream().mapToLong(w -> 64 + 4 * Shapes.numel(w.shape)).sum();
      try (Window window = inWindow ? link.communicator().window(bytes) : null) {
        LinkTransferBuilder builder = link.transferBuilder().defaultWire(DType.BF16);
        moved.options.accept(builder);
        List<Tensor> sources = new ArrayList<>();
        for (Weight w : weights) {
          sources.add(w.part(w.from, rank, DType.F32, window));
          if (link.sends()) {
            builder.add(w.name, w.shape, sources.get(sources.size() - 1), w.from);
          }
        }
        for (Weight w : weights) {
          if (link.receives()) {
            builder.into(w.name, w.shape, w.part(w.to, rank, dtypeOf(w), null), w.to);
          }
        }
        try (LinkTransfer transfer = builder.register(SOON)) {
          for (long version = 1; version <= 3; version++) {
            for (int i = 0; i < weights.size(); i++) {
              if (sources.get(i) != null) {
                Weight w = weights.get(i);
                sources.get(i).copyFrom(w.held(w.from, rank, version));
              }
            }
            if (link.sends()) {
              transfer.send(version, SOON);
            } else {
              assertThat(transfer.receive(SOON)).isEqualTo(version);
            }
            if (link.receives()) {
              assertThat(transfer.version()).hasValue(version);
              check(transfer, weights, rank, version);
            }
          }
        }
      }
    }
  }

  /** What a weight's name says. */
  private static DType dtypeOf(Weight weight) {
    return weight.name.endsWith("wide") ? DType.F32 : DType.BF16;
  }

  private static void check(LinkTransfer transfer, List<Weight> weights, int rank, long version) {
    for (Weight w : weights) {
      if (w.to.mesh().contains(rank)) {
        assertThat(values(transfer.tensor(w.name)))
            .as("%s of version %d on rank %d", w, version, rank)
            .containsExactly(w.held(w.to, rank, version));
      }
    }
  }

  @OnRanks({1, 2, 4, 8})
  void versionsReachTheOtherSide(Ranks ranks) {
    boolean isWhole = ranks.launch() == Launch.THREADS;
    ranks.run(
        comm -> {
          int n = comm.size();
          int trainers = Math.max(1, n / 2);
          DeviceMesh trainer =
              DeviceMesh.of("dp", trainers > 1 ? 2 : 1, "tp", Math.max(1, trainers / 2));
          DeviceMesh apart = DeviceMesh.of("tp", Math.max(1, n - trainers));
          DeviceMesh equal = DeviceMesh.of("tp", n);
          DeviceMesh overlapping = DeviceMesh.of("tp", Math.max(1, n - 1)).at(n > 1 ? 1 : 0);
          for (DeviceMesh fleet : List.of(apart.at(n > 1 ? trainers : 0), equal, overlapping)) {
            for (Moved moved : Moved.values()) {
              sync(comm, weights(trainer, fleet), new Random(comm.rank()), moved, isWhole);
            }
          }
        });
  }

  private static List<Weight> weights(DeviceMesh trainer, DeviceMesh fleet) {
    return List.of(
        new Weight(
            "uneven",
            new long[] {7, 5},
            trainer.layout(Placement.replicate(), Placement.shard(0)),
            fleet.layout(Placement.shard(1))),
        new Weight(
            "sum wide",
            new long[] {6, 9},
            trainer.layout(Placement.partial(), Placement.shard(1)),
            fleet.layout(Placement.shard(0))),
        new Weight(
            "scalar",
            new long[0],
            trainer.layout(Placement.replicate(), Placement.replicate()),
            fleet.layout(Placement.replicate())));
  }

  /** How versions move. */
  private enum Moved {
    AS_THEY_ARE(builder -> {}, false),
    IN_PLACE(LinkTransferBuilder::inPlace, false),
    CHECKED(LinkTransferBuilder::checksums, true),
    CHECKED_IN_PLACE(
        builder -> builder.inPlace().checksums().defaultMode(TransferMode.STAGED)
            .defaultBucketBytes(1), true);

    private final Consumer<LinkTransferBuilder> options;
    private final boolean hasChecksums;

    Moved(Consumer<LinkTransferBuilder> options, boolean hasChecksums) {
      this.options = options;
      this.hasChecksums = hasChecksums;
    }
  }

  @RandomSeeds(value = 20, inLong = 200)
  void anyLayoutOfEitherSide(long seed) {
    Ranks.atLeast(Launch.THREADS, ranks(weights(seed))).run(comm -> syncAny(comm, seed, true));
  }

  @RandomSeeds(value = 5, inLong = 100)
  void anyLayoutOfSidesInTwoProcesses(long seed) {
    Ranks.atLeast(Launch.BOTH, ranks(weights(seed))).run(comm -> syncAny(comm, seed, false));
  }

  private static void syncAny(Communicator comm, long seed, boolean isWhole) {
    Moved moved = Moved.values()[Math.floorMod(seed, 4)];
    sync(comm, weights(seed), new Random(seed + comm.rank()), moved, isWhole);
  }

  private static List<Weight> weights(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(random.nextLong(), 8);
    List<Weight> weights = new ArrayList<>();
    while (weights.size() < 6) {
      long[] shape = layouts.shape(4, 200);
      Layout from = layouts.layout(true, shape);
      Layout to = layouts.layout(false, shape);
      if (from.partialOp().orElse(ReduceOp.SUM) == ReduceOp.SUM) {
        String name = weights.size() + (random.nextBoolean() ? " wide" : "");
        weights.add(new Weight(name, shape, from, to));
      }
    }
    return weights;
  }

  /** One more than the highest that they name. */
  private static int ranks(List<Weight> weights) {
    return 1 + Math.max(side(weights, true).highestRank(), side(weights, false).highestRank());
  }

  @OnRanks(5)
  void paddingOfATargetIsZeroInBothHalves(Ranks ranks) {
    ranks.run(
        comm -> {
          DeviceMesh one = DeviceMesh.of(1);
          DeviceMesh four = DeviceMesh.of(4).at(1);
          try (Link link = Link.open(comm, "weights", one, four)) {
            LinkTransferBuilder builder = link.transferBuilder().checksums();
            Tensor own = f32(link.sends() ? 10 : 4, 3);
            own.fill(88);
            if (link.sends()) {
              Layout whole = one.layout(Placement.replicate());
              builder.add("vocabulary", new long[] {10, 3}, own, whole);
            } else {
              Layout rows = four.layout(Placement.shard(0));
              TensorSpec spec = TensorSpec.of("vocabulary", DType.F32, rows, 10, 3);
              builder.into(spec.padded(16, 3), own);
            }
            try (LinkTransfer transfer = builder.register(SOON)) {
              for (long version = 1; version <= 3; version++) {
                if (link.sends()) {
                  own.fill(version);
                  transfer.send(version);
                  continue;
                }
                transfer.receive(version);
                int real = Math.min(4, Math.max(0, 10 - 4 * (comm.rank() - 1)));
                Tensor part = transfer.tensor("vocabulary");
                if (real > 0) {
                  assertThat(values(part.narrow(0, 0, real))).containsOnly(version);
                }
                if (real < 4) {
                  assertThat(values(part.narrow(0, real, 4 - real))).containsOnly(0);
                }
              }
            }
          }
        });
  }

  @OnRanks(2)
  void fusedAndTiedViewsAreOneTensorInBothHalves(Ranks ranks) {
    ranks.run(
        comm -> {
          DeviceMesh one = DeviceMesh.of(1);
          Layout whole = one.layout(Placement.replicate());
          try (Link link = Link.open(comm, "weights", one, one.at(1))) {
            if (comm.rank() == 0) {
              Tensor q = Tensor.allocate(DType.F32, 4, 3);
              Tensor k = Tensor.allocate(DType.F32, 2, 3);
              LinkTransferBuilder builder =
                  link.transferBuilder()
                      .add("q", new long[] {4, 3}, q, whole)
                      .add("k", new long[] {2, 3}, k, whole);
              try (LinkTransfer transfer = builder.register(SOON)) {
                for (long version = 1; version <= 4; version++) {
                  q.fill(version);
                  k.fill(-version);
                  transfer.send(version);
                }
              }
              return;
            }
            Tensor fused = Tensor.allocate(DType.F32, 7, 3);
            Tensor tied = Tensor.allocate(DType.BF16, 3, 4);
            fused.fill(77);
            Layout here = one.at(1).layout(Placement.replicate());
            LinkTransferBuilder builder =
                link.transferBuilder()
                    .into("q", new long[] {4, 3}, fused.narrow(0, 0, 4), here)
                    .into("k", new long[] {2, 3}, fused.narrow(0, 4, 2), here)
                    .into("q", new long[] {4, 3}, tied.transpose(0, 1), here);
            LinkTransfer transfer = builder.register(SOON);
            assertThat(transfer.version()).isEmpty();
            assertThatThrownBy(() -> transfer.tensor("k"))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("no version has arrived");
            assertThatThrownBy(() -> transfer.tensor("v"))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("this rank receives no part of a tensor 'v'");
            Tensor before = null;
            for (long version = 1; version <= 4; version++) {
              transfer.receive(version);
              Tensor both = transfer.tensor(fused.narrow(0, 0, 6));
              assertThat(values(both.narrow(0, 0, 4))).containsOnly(version);
              assertThat(values(both.narrow(0, 4, 2))).containsOnly(-version);
              assertThat(values(transfer.tensor("k"))).containsOnly(-version);
              assertThat(transfer.tensor("k").address())
                  .isEqualTo(both.narrow(0, 4, 2).address());
              assertThat(values(transfer.tensor(tied))).containsOnly(version);
              if (before != null) {
                assertThat(values(before)).containsOnly(1 - version);
              }
              before = transfer.tensor("k");
            }
            assertThat(values(fused.narrow(0, 6, 1))).containsOnly(77);
            assertThatThrownBy(() -> transfer.tensor("q"))
                .hasMessageContaining("taken into 2 views");
            assertThatThrownBy(() -> transfer.tensor("o")).hasMessageContaining("'o'");
            assertThatThrownBy(() -> transfer.tensor(fused))
                .isInstanceOf(InvalidArgumentException.class);
            assertThatThrownBy(() -> transfer.tensor(Tensor.allocate(DType.F32, 1)))
                .isInstanceOf(InvalidArgumentException.class);
            transfer.close();
            assertThat(values(transfer.tensor("k"))).containsOnly(-4);
            assertThatThrownBy(transfer::progress).isInstanceOf(ClosedException.class);
          }
        });
  }

  private static Tensor f32(long... shape) {
    return Tensor.allocate(DType.F32, shape);
  }
}
