// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.AbortedException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Shapes;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.CutReference;
import org.windlass.testing.Processes;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;
import org.windlass.transfer.BoundViews;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/** Checksums of what arrives, and replicas that are none. */
@Timeout(120)
class ChecksumTest {
  private static final List<DType> FLOATS =
      List.of(DType.F64, DType.F32, DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2);

  /**
   * A random transfer is transferred and passes; then one bit of one target changes, and every rank
   * is told of that tensor and that rank.
   */
  @RandomSeeds(value = 25, inLong = 250)
  void oneBitOfOneTargetIsFound(long seed) {
    checkOneBit(seed);
  }

  /** On whichever target this process runs. */
  static void checkOneBit(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(random.nextLong(), 8);
    List<TensorSpec[]> specs = new ArrayList<>();
    int highest = 0;
    while (specs.size() < 5) {
      long[] shape = layouts.shape(4, 300);
      Layout source = layouts.layout(true, shape);
      Layout target = layouts.layout(false, shape);
      DType from = FLOATS.get(random.nextInt(6));
      String name = "t" + specs.size();
      specs.add(
          new TensorSpec[] {
            TensorSpec.of(name, from, source, shape),
            TensorSpec.of(name, FLOATS.get(random.nextInt(6)), target, shape)
          });
      highest = Math.max(highest, source.mesh().highestRank());
      highest = Math.max(highest, target.mesh().highestRank());
    }
    DType wire = FLOATS.get(random.nextInt(6));
    int wrongTensor = random.nextInt(specs.size());
    Layout wrongLayout = specs.get(wrongTensor)[1].layout();
    int wrongRank = wrongLayout.mesh().rankAtPlace(random.nextInt(wrongLayout.mesh().size()));
    try (LocalGroup group = LocalGroup.of(highest + 1)) {
      group.run(
          comm -> {
            TransferBuilder builder = TransferBuilder.of(comm).defaultWire(wire);
            Random values = new Random(seed + comm.rank());
            List<Tensor> targets = new ArrayList<>();
            for (TensorSpec[] spec : specs) {
              Tensor source = part(spec[0], comm.rank());
              if (source != null && source.numel() > 0) {
                // Replicas are equal.
                Region held = spec[0].layout().localRegion(spec[0].extents(), comm.rank());
                Random same = new Random(seed + held.hashCode());
                source.copyFrom(same.doubles(source.numel(), -9, 9).toArray());
              }
              targets.add(part(spec[1], comm.rank()));
              builder.add(
                  spec[0],
                  BoundViews.of(source),
                  spec[1],
                  BoundViews.of(targets.get(targets.size() - 1)));
            }
            try (Transfer transfer = builder.register()) {
              transfer.run(1);
              Checksums checksums = new Checksums(comm, transfer);
              Deadline until = Deadline.of(Duration.ofSeconds(30));
              assertThat(checksums.verify(1, until)).isNull();
              Tensor wrong = targets.get(wrongTensor);
              boolean empty =
                  Shapes.numel(
                          wrongLayout.localShape(specs.get(wrongTensor)[1].extents(), wrongRank))
                      == 0;
              if (comm.rank() == wrongRank && !empty) {
                flip(wrong, random(wrong, values));
              }
              Checksums.Failure failure = checksums.verify(1, until);
              if (empty) {
                assertThat(failure).isNull();
                return;
              }
              assertThat(failure.exception())
                  .hasMessageContaining("tensor 't" + wrongTensor + "' on rank " + wrongRank);
              assertThat(failure.exception().faultyRanks()).containsExactly(wrongRank);
              assertThat(failure.wrong().isEmpty()).isEqualTo(comm.rank() != wrongRank);
            }
          });
    }
  }

  private static Tensor part(TensorSpec spec, int rank) {
    return spec.layout().mesh().contains(rank)
        ? Tensor.allocate(spec.dtype(), spec.layout().localShape(spec.extents(), rank))
        : null;
  }

  private static long[] random(Tensor tensor, Random random) {
    long[] index = tensor.shape();
    for (int d = 0; d < index.length; d++) {
      index[d] = random.nextInt((int) index[d]);
    }
    return index;
  }

  /** Flips the lowest bit of an element. */
  private static void flip(Tensor tensor, long... index) {
    Tensor element = tensor;
    for (long i : index) {
      element = element.select(0, i);
    }
    var bytes = element.asByteBuffer();
    bytes.put(0, (byte) (bytes.get(0) ^ 1));
  }

  /**
   * One of two senders hashes what it sends alone, column by column, and then its share of the sum
   * of both, while the other waits for it; the link ends, and the other lets go of what it sent.
   */
  @Test
  void aSenderThatFailsKeepsItsSourceWhileAnotherHashesIt() throws Exception {
    long[] shape = {4096, 4096};
    DeviceMesh trainers = DeviceMesh.of(2);
    DeviceMesh one = DeviceMesh.of(1).at(2);
    Link[] links = new Link[3];
    CountDownLatch ready = new CountDownLatch(3);
    CountDownLatch dead = new CountDownLatch(1);
    try (LocalGroup group = LocalGroup.of(3)) {
      Thread killer =
          new Thread(
              () -> {
                try {
                  ready.await();
                  Communicator comm = links[2].communicator();
                  // Rank 0 has left the move and hashes, or is about to; two wait for it.
                  while (waiting(comm) != 2) {
                    Thread.onSpinWait();
                  }
                  comm.abort("the test");
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                } finally {
                  dead.countDown();
                }
              });
      killer.start();
      group.run(
          comm -> {
            Tensor own = Tensor.allocate(DType.F32, shape);
            Tensor alone =
                comm.rank() == 1 ? null : Tensor.allocate(DType.F32, shape).transpose(0, 1);
            try (Link link = Link.open(comm, "summed", trainers, one)) {
              LinkTransferBuilder builder = link.transferBuilder().inPlace().checksums();
              if (link.sends()) {
                builder
                    .add("alone", shape, alone, DeviceMesh.of(1).layout(Placement.replicate()))
                    .add("sum", shape, own, trainers.layout(Placement.partial(ReduceOp.SUM)));
              } else {
                Layout whole = one.layout(Placement.replicate());
                builder.into("alone", shape, alone, whole).into("sum", shape, own, whole);
              }
              links[comm.rank()] = link;
              try (LinkTransfer transfer = builder.register()) {
                ready.countDown();
                ready.await();
                assertThatThrownBy(
                        () -> {
                          for (long version = 1; ; version++) {
                            if (link.sends()) {
                              transfer.send(version);
                            } else {
                              transfer.receive();
                            }
                          }
                        })
                    .isInstanceOf(AbortedException.class);
              }
              own.close();
            }
          });
      dead.await();
    }
  }

  /** A sum whose terms lie in several processes is checked where they lie in a window of its link. */
  @Test
  void sumsOfSeveralProcesses(@TempDir Path folder) throws Exception {
    try (Processes processes = new Processes(ChecksumTest.class, 3, folder)) {
      for (Processes.Rank process : processes.start("checkedSums")) {
        process.ended();
      }
    }
  }

  /** What each of them runs. */
  static void checkedSums() {
    DeviceMesh trainers = DeviceMesh.of(2);
    DeviceMesh one = DeviceMesh.of(1).at(2);
    long[] shape = {1000};
    try (Communicator comm = Communicator.fromEnvironment();
        Link link = Link.open(comm, "summed", trainers, one);
        Window window = link.communicator().window(1 << 16)) {
      for (boolean inWindow : new boolean[] {false, true}) {
        Tensor own =
            inWindow ? window.tensor(DType.F32, shape) : Tensor.allocate(DType.F32, shape);
        own.fill(comm.rank() + 1);
        LinkTransferBuilder builder = link.transferBuilder().checksums();
        if (link.sends()) {
          builder.add("w", shape, own, trainers.layout(Placement.partial(ReduceOp.SUM)));
        } else {
          builder.into("w", shape, own, one.layout(Placement.replicate()));
        }
        if (!inWindow) {
          assertThatThrownBy(builder::register)
              .isInstanceOf(UnsupportedException.class)
              .hasMessageContaining("tensor 'w'")
              .hasMessageContaining("in other processes, outside windows");
          continue;
        }
        try (LinkTransfer transfer = builder.register()) {
          if (link.sends()) {
            transfer.send(1);
          } else {
            assertThat(transfer.receive()).isEqualTo(1);
            assertThat(transfer.tensor("w").getDouble(999)).isEqualTo(3);
          }
        }
      }
    }
  }

  /** How many ranks are in the exchange of hashes. */
  private static long waiting(Communicator comm) {
    return comm.report().ranks().stream()
        .filter(
            rank ->
                rank.current().filter(call -> call.operation().equals("all-to-all-v")).isPresent())
        .count();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatChangesWhileItIsSentIsNotCommitted(boolean inPlace) {
    DeviceMesh one = DeviceMesh.of(1);
    Layout whole = one.layout(Placement.replicate());
    long[] shape = {1 << 20};
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            try (Link link = Link.open(comm, "changing", one, one.at(1))) {
              Tensor own = Tensor.allocate(DType.F32, shape);
              Tensor still = Tensor.allocate(DType.F32, 3);
              LinkTransferBuilder builder = link.transferBuilder();
              if (link.sends()) {
                builder.add("still", new long[] {3}, still, whole).add("w", shape, own, whole);
              } else {
                Layout here = one.at(1).layout(Placement.replicate());
                builder = inPlace ? builder.inPlace() : builder;
                builder.checksums().into("still", new long[] {3}, still, here);
                builder.into("w", shape, own, here);
              }
              try (LinkTransfer transfer = builder.register()) {
                if (link.sends()) {
                  sendWhileItChanges(transfer, own);
                } else {
                  refuse(transfer, inPlace);
                }
              }
            }
          });
    }
  }

  /** The source changes from end to end, again and again, until a version has been refused. */
  private static void sendWhileItChanges(LinkTransfer transfer, Tensor source) {
    transfer.send(1);
    Throwable failure = null;
    for (long version = 2; failure == null; version++) {
      Thread writer =
          new Thread(
              () -> {
                for (float value = 1; !Thread.interrupted(); value++) {
                  source.fill(value);
                }
              });
      writer.start();
      long now = version;
      failure = catchThrowable(() -> transfer.send(now));
      writer.interrupt();
      catchThrowable(writer::join);
    }
    assertThat(failure)
        .isInstanceOf(VerificationFailedException.class)
        .hasMessageContaining("tensor 'w' on rank 1 is not what rank 0 sent");
    source.fill(-1);
    transfer.send(7_000_000);
  }

  private static void refuse(LinkTransfer transfer, boolean inPlace) {
    transfer.receive(1);
    long version = 1;
    Throwable failure = null;
    while (failure == null) {
      try {
        version = transfer.receive();
      } catch (VerificationFailedException e) {
        failure = e;
      }
    }
    assertThat(((WindlassException) failure).faultyRanks()).containsExactly(1);
    if (inPlace) {
      assertThat(transfer.version()).isEmpty();
      assertThat(transfer.incomplete()).containsExactly("w");
      assertThatThrownBy(() -> transfer.tensor("still")).isInstanceOf(AbortedException.class);
    } else {
      assertThat(transfer.version()).hasValue(version);
      assertThat(transfer.incomplete()).isEmpty();
    }
    transfer.receive(7_000_000);
    assertThat(transfer.version()).hasValue(7_000_000);
    assertThat(transfer.tensor("w").getDouble(77)).isEqualTo(-1);
    assertThat(transfer.incomplete()).isEmpty();
  }

  /** One element of one replica differs; the tensors around it are equal. */
  @RandomSeeds(value = 25, inLong = 250)
  void theFirstElementThatDiffersIsNamed(long seed) {
    checkReplicas(seed);
  }

  /** On whichever target this process runs. */
  static void checkReplicas(long seed) {
    Random random = new Random(seed);
    DeviceMesh mesh = DeviceMesh.of("dp", 3, "tp", 2).at(random.nextInt(2));
    int kind = random.nextInt(3);
    int columns = kind == 1 ? 4 * (1 + random.nextInt(3)) : 4 + random.nextInt(9);
    long[] shape = {1 + random.nextInt(9), 1 + random.nextInt(9), columns};
    Layout layout =
        switch (kind) {
          case 0 -> mesh.layout(Placement.replicate(), Placement.shard(2));
          case 1 -> mesh.layout(Placement.replicate(), Placement.stridedShard(2, 2));
          default -> mesh.layout(Placement.replicate(), Placement.partial());
        };
    int tp = random.nextInt(2);
    int wrongRank = mesh.rankAt(1 + random.nextInt(2), tp);
    TensorSpec spec = TensorSpec.of("w", DType.BF16, layout, shape);
    boolean linked = random.nextBoolean();
    try (LocalGroup group = LocalGroup.of(8)) {
      group.run(
          comm -> {
            int rank = comm.rank();
            Tensor source = part(spec, rank);
            long[] index = {0, 0, 0};
            if (source != null) {
              source.copyFrom(
                  new Random(seed + mesh.coordinates(rank)[1]).doubles(source.numel()).toArray());
            }
            Region held =
                layout.localRegion(shape, mesh.rankAt(0, tp)); // of which the index is global
            Random where = new Random(seed);
            for (int d = 0; d < 3; d++) {
              index[d] = where.nextInt((int) held.extent(d));
            }
            Tensor norm = Tensor.allocate(DType.F32, 5).fill(1);
            TensorSpec same =
                TensorSpec.of(
                    "norm",
                    DType.F32,
                    mesh.layout(Placement.replicate(), Placement.replicate()),
                    5);
            Layout to = Layout.parse("1@7:R");
            Tensor target = rank == 7 ? Tensor.allocate(DType.BF16, shape) : null;
            Tensor norms = rank == 7 ? Tensor.allocate(DType.F32, 5) : null;
            Runnable check;
            Runnable closes;
            if (linked) {
              DeviceMesh receivers = DeviceMesh.of(1).at(7);
              Link link = Link.open(comm, "replicas", mesh, receivers);
              if (link == null) {
                return;
              }
              LinkTransferBuilder builder = link.transferBuilder();
              if (link.sends()) {
                builder.add("norm", new long[] {5}, norm, same.layout());
                builder.add("w", shape, BoundViews.of(source), layout);
              } else {
                builder.into("norm", new long[] {5}, norms, to).into("w", shape, target, to);
              }
              LinkTransfer transfer = builder.register();
              closes =
                  () -> {
                    transfer.close();
                    link.close();
                  };
              check = transfer::checkReplicas;
              if (!link.sends()) {
                closes.run();
                return;
              }
            } else {
              TransferBuilder builder = TransferBuilder.of(comm);
              builder.add(
                  same,
                  source == null ? null : norm,
                  TensorSpec.of("norm", DType.F32, to, 5),
                  norms);
              builder.add(
                  spec, BoundViews.of(source), TensorSpec.of("w", DType.BF16, to, shape), target);
              Transfer transfer = builder.register();
              closes = transfer::close;
              check = transfer::checkReplicas;
            }
            check.run();
            if (rank == wrongRank) {
              flip(source, index);
              long[] last = source.shape();
              for (int d = 0; d < 3; d++) {
                last[d]--;
              }
              if (!Arrays.equals(last, index)) {
                flip(source, last);
              }
            }
            long[] global = new long[3];
            for (int d = 0; d < 3; d++) {
              global[d] =
                  CutReference.held(layout, mesh.coordinates(wrongRank), d, shape[d])
                      .get((int) index[d]);
            }
            int shift = linked ? Math.min(mesh.lowestRank(), 1) : 0; // ranks of the link
            assertThatThrownBy(check::run)
                .isInstanceOf(VerificationFailedException.class)
                .hasMessageContaining("tensor 'w' on rank " + (wrongRank - shift))
                .hasMessageContaining("rank " + (mesh.rankAt(0, tp) - shift))
                .hasMessageContaining(Arrays.toString(global));
            closes.run();
          });
    }
  }

  @Test
  void tensorsWithoutReplicasHaveNothingToCheck() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            Layout rows = Layout.parse("2:S0");
            Tensor source = Tensor.allocate(DType.F32, 1).fill(comm.rank());
            Tensor target = Tensor.allocate(DType.F32, 2);
            TransferBuilder builder = TransferBuilder.of(comm);
            builder.add("w", new long[] {2}, DType.F32, rows, source, Layout.parse("2:R"), target);
            try (Transfer transfer = builder.register()) {
              transfer.checkReplicas();
            }
          });
    }
  }
}
