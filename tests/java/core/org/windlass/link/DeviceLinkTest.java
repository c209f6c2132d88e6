// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.CudaStandIn;
import org.windlass.testing.OnRanks;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Ranks;
import org.windlass.testing.TestClasses;
import org.windlass.transfer.BoundViews;

/**
 * Links on target cuda, of ranks as threads and in several processes: the tests of links where
 * hosts have all memory and where GPUs have it, and tensors over a device's memory.
 */
@Tag("devices")
@Timeout(300)
class DeviceLinkTest {
  @TempDir Path folder;

  static Stream<Arguments> classes() {
    return Stream.of(
        Arguments.of(1, false, new Class<?>[] {LinkTest.class}),
        Arguments.of(3, true, new Class<?>[] {LinkTest.class}),
        Arguments.of(
            2,
            false,
            new Class<?>[] {LinkVersionsTest.class, LinkTransferBuilderTest.class,
                LinkSideTest.class}),
        Arguments.of(3, true, new Class<?>[] {Tensors.class}));
  }

  @ParameterizedTest(name = "{2}, {0} GPUs, all memory on them: {1}")
  @MethodSource("classes")
  void testsPassOnGpus(int devices, boolean hasAllMemory, Class<?>[] classes) throws Exception {
    String[] names = Arrays.stream(classes).map(Class::getName).toArray(String[]::new);
    assertThat(CudaStandIn.run(folder, devices, hasAllMemory, TestClasses.class, names))
        .containsPattern("(?m)^[1-9]\\d* tests passed on cuda$");
  }

  /** Not found by name as tests: for processes where all memory is a device's. */
  static final class Tensors {
    private static final Duration SOON = Duration.ofSeconds(60);
    private static final int SIDE = 16;
    private static final int HALF = SIDE / 2;
    private static final long[] SHAPE = {SIDE, SIDE};
    private static final int LARGE = 512;
    private static final int VERSIONS = 40; // which bf16 holds

    @OnRanks(4)
    void movedVersionAfterVersion(Ranks ranks) {
      ranks.run(comm -> move(comm, false, false));
    }

    @OnRanks(4)
    void movedInPlace(Ranks ranks) {
      ranks.run(comm -> move(comm, true, false));
    }

    @OnRanks(4)
    void movedAndChecked(Ranks ranks) {
      ranks.run(comm -> move(comm, false, true));
    }

    /** Of a receiver whose part has three columns more than the tensor. */
    @OnRanks(2)
    void paddingIsZero(Ranks ranks) {
      ranks.run(
          comm -> {
            DeviceMesh one = DeviceMesh.of(1);
            try (Link link = Link.open(comm, "padded", one, one.at(1))) {
              LinkTransferBuilder builder = link.transferBuilder();
              Tensor own = Tensor.allocate(DType.F32, 4, link.sends() ? 5 : 8).fill(7);
              if (link.sends()) {
                Layout whole = one.layout(Placement.replicate());
                builder.add("w", new long[] {4, 5}, BoundViews.of(own), whole);
              } else {
                Layout whole = one.at(1).layout(Placement.replicate());
                builder.into(
                    TensorSpec.of("w", DType.F32, whole, 4, 5).padded(4, 8), BoundViews.of(own));
              }
              try (LinkTransfer transfer = builder.register(SOON)) {
                if (link.sends()) {
                  transfer.send(1, SOON);
                  return;
                }
                transfer.receive(1, SOON);
                Tensor held = BoundViews.onHost(transfer.tensor("w"));
                for (int i = 0; i < 32; i++) {
                  assertThat(held.getDouble(i / 8, i % 8)).as("%d", i).isEqualTo(i % 8 < 5 ? 7 : 0);
                }
              }
            }
          });
    }

    @RandomSeeds(value = 3, inLong = 30)
    void oneBitOfOneTargetIsFound(long seed) {
      ChecksumTest.checkOneBit(seed);
    }

    @RandomSeeds(value = 3, inLong = 30)
    void theFirstElementThatDiffersIsNamed(long seed) {
      ChecksumTest.checkReplicas(seed);
    }

    /** A receiver reads all the while: what it gets is always one version, whole. */
    @OnRanks(4)
    void whoReadsMeanwhileFindsWholeVersions(Ranks ranks) {
      ranks.run(Tensors::readMeanwhile);
    }

    /** Ranks 0 and 1 have rows, f32; ranks 2 and 3 take columns, bf16, which holds all elements. */
    private static void move(Communicator comm, boolean inPlace, boolean checked) {
      DeviceMesh two = DeviceMesh.of(2);
      int part = comm.rank() % 2;
      try (Link link = Link.open(comm, "weights", two, two.at(2))) {
        LinkTransferBuilder builder = link.transferBuilder();
        if (inPlace) {
          builder.inPlace();
        }
        if (checked) {
          builder.checksums();
        }
        Tensor own;
        if (link.sends()) {
          own = Tensor.allocate(DType.F32, HALF, SIDE);
          builder.add("w", SHAPE, BoundViews.of(own), two.layout(Placement.shard(0)));
        } else {
          own = Tensor.allocate(DType.BF16, SIDE, HALF);
          builder.into("w", SHAPE, BoundViews.of(own), two.at(2).layout(Placement.shard(1)));
        }
        try (LinkTransfer transfer = builder.register(SOON)) {
          Tensor before = null;
          for (long version = 1; version <= 4; version++) {
            if (link.sends()) {
              own.copyFrom(rows(part, version));
              transfer.send(version, SOON);
              continue;
            }
            transfer.receive(version, SOON);
            Tensor held = transfer.tensor("w");
            assertThat(held.isOnDevice()).isTrue();
            requireColumns(held, part, version);
            if (before != null && !inPlace) {
              assertThat(before.address()).isNotEqualTo(held.address());
              requireColumns(before, part, version - 1);
            }
            before = held;
          }
        }
      }
    }

    private static void readMeanwhile(Communicator comm) throws Exception {
      DeviceMesh two = DeviceMesh.of(2);
      long[] shape = {LARGE, LARGE};
      try (Link link = Link.open(comm, "weights", two, two.at(2))) {
        LinkTransferBuilder builder = link.transferBuilder();
        if (link.sends()) {
          Tensor own = Tensor.allocate(DType.F32, LARGE / 2, LARGE);
          builder.add("w", shape, BoundViews.of(own), two.layout(Placement.shard(0)));
          LinkTransfer transfer = builder.register(SOON);
          for (int version = 1; version <= VERSIONS; version++) {
            own.fill(version);
            transfer.send(version, SOON);
          }
          comm.barrier();
          if (comm.rank() == 0) {
            link.communicator().abort("the test");
          }
          assertThatThrownBy(() -> transfer.send(VERSIONS + 1, SOON))
              .isInstanceOf(AbortedException.class);
          transfer.close();
          return;
        }
        Tensor own = Tensor.allocate(DType.BF16, LARGE, LARGE / 2);
        builder.into("w", shape, BoundViews.of(own), two.at(2).layout(Placement.shard(1)));
        try (LinkTransfer transfer = builder.register(SOON)) {
          transfer.receive(1, SOON);
          try (Reader reader = new Reader(transfer)) {
            for (int version = 2; version <= VERSIONS; version++) {
              int overwritten = version - 2;
              reader.await(() -> !reader.reads(overwritten));
              transfer.receive(version, SOON);
            }
            reader.await(() -> reader.found.contains(VERSIONS));
            comm.barrier();
            assertThatThrownBy(() -> transfer.receive(VERSIONS + 1, SOON))
                .isInstanceOf(AbortedException.class);
          }
          assertThat(versionOf(transfer.tensor("w"))).isEqualTo(VERSIONS);
        }
      }
    }

    /** The version that all elements are of; they are equal in each. */
    private static int versionOf(Tensor device) {
      Tensor found = BoundViews.onHost(device);
      short[] bits = new short[(int) found.numel()];
      found.asByteBuffer().asShortBuffer().get(bits);
      for (short each : bits) { // an assertion of AssertJ for each takes longer than the versions
        if (each != bits[0]) {
          throw new AssertionError("elements are " + bits[0] + " and " + each);
        }
      }
      return (int) found.getDouble(0, 0);
    }

    /** A thread that reads the version that is held, over and over, until it is closed. */
    private static final class Reader implements AutoCloseable {
      private final LinkTransfer transfer;
      private final Set<Integer> found = ConcurrentHashMap.newKeySet();
      private final CompletableFuture<Void> thread;
      private volatile boolean ends;

      /** Of the version that it reads now; guarded by this. */
      private int reading;

      Reader(LinkTransfer transfer) {
        this.transfer = transfer;
        this.thread = CompletableFuture.runAsync(this::read);
      }

      private void read() {
        int last = 0;
        while (!ends) {
          Tensor held;
          synchronized (this) {
            reading = (int) transfer.version().orElseThrow();
            held = transfer.tensor("w");
          }
          int version = versionOf(held);
          assertThat(version).isGreaterThanOrEqualTo(last);
          last = version;
          found.add(version);
          synchronized (this) {
            reading = 0;
          }
        }
      }

      /** Whether it reads that version, or an older one. */
      private synchronized boolean reads(int version) {
        return reading != 0 && reading <= version;
      }

      void await(BooleanSupplier isThere) {
        long endNs = System.nanoTime() + SOON.toNanos();
        while (!isThere.getAsBoolean()) {
          assertThat(System.nanoTime()).isLessThan(endNs);
          assertThat(thread).isNotDone();
          LockSupport.parkNanos(200_000);
        }
      }

      @Override
      public void close() {
        ends = true;
        thread.join();
      }
    }

    private static float value(long version, int row, int column) {
      return (31 * version + 7 * row + column) % 200;
    }

    private static float[] rows(int part, long version) {
      float[] rows = new float[HALF * SIDE];
      for (int i = 0; i < rows.length; i++) {
        rows[i] = value(version, part * HALF + i / SIDE, i % SIDE);
      }
      return rows;
    }

    private static void requireColumns(Tensor device, int part, long version) {
      Tensor found = BoundViews.onHost(device);
      for (int row = 0; row < SIDE; row++) {
        for (int column = 0; column < HALF; column++) {
          assertThat(found.getDouble(row, column))
              .as("version %d at [%d, %d] of part %d", version, row, column, part)
              .isEqualTo(value(version, row, part * HALF + column));
        }
      }
    }
  }
}
