// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;
import org.windlass.internal.Memory;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.testing.CudaStandIn;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.testing.TestClasses;

/**
 * Links on target cuda, of ranks as threads and in several processes: the tests of links where hosts
 * have all memory and where GPUs have it, and tensors over a device's memory.
 */
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
            new Class<?>[] {LinkVersionsTest.class, LinkBatchTest.class, LinkSideTest.class}),
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

    @OnRanks(4)
    void movedVersionAfterVersion(Ranks ranks) {
      ranks.run(comm -> move(comm, false));
    }

    @OnRanks(4)
    void movedInPlace(Ranks ranks) {
      ranks.run(comm -> move(comm, true));
    }

    /** Ranks 0 and 1 have rows, f32; ranks 2 and 3 take columns, bf16, which holds all elements. */
    private static void move(Communicator comm, boolean inPlace) {
      DeviceMesh two = DeviceMesh.of(2);
      int part = comm.rank() % 2;
      try (Link link = Link.open(comm, "weights", two, two.at(2))) {
        LinkBatch batch = link.batch();
        if (inPlace) {
          batch.inPlace();
        }
        Tensor own;
        if (link.sends()) {
          own = Tensor.allocate(DType.F32, HALF, SIDE);
          batch.add("w", SHAPE, onDevice(own), two.layout(Placement.shard(0)));
        } else {
          own = Tensor.allocate(DType.BF16, SIDE, HALF);
          batch.into("w", SHAPE, onDevice(own), two.at(2).layout(Placement.shard(1)));
        }
        try (LinkTransfer transfer = batch.register(SOON)) {
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
        refuseChecksums(link, own);
      }
    }

    private static void refuseChecksums(Link link, Tensor own) {
      DeviceMesh two = DeviceMesh.of(2);
      Layout rows = two.layout(Placement.shard(0));
      Layout columns = two.at(2).layout(Placement.shard(1));
      LinkBatch batch = link.batch().checksums();
      if (link.sends()) {
        batch.add("w", SHAPE, onDevice(own), rows);
      } else {
        batch.into("w", SHAPE, own, columns);
      }
      assertThatThrownBy(() -> batch.register(SOON))
          .isInstanceOf(UnsupportedException.class)
          .hasMessageContaining("rank 0 has views in a device's memory, where checksums");
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
      Tensor found = onHost(device);
      for (int row = 0; row < SIDE; row++) {
        for (int column = 0; column < HALF; column++) {
          assertThat(found.getDouble(row, column))
              .as("version %d at [%d, %d] of part %d", version, row, column, part)
              .isEqualTo(value(version, row, part * HALF + column));
        }
      }
    }

    /** The memory of a tensor of the host, which lies on a device here. */
    private static Tensor onDevice(Tensor host) {
      long bytes = host.numel() * host.dtype().bytes();
      return Tensor.ofDevice(host.address(), bytes, host, host.dtype(), host.shape());
    }

    /** The same back: the stand-in's devices have memory of the host. */
    private static Tensor onHost(Tensor device) {
      Memory memory = Memory.of(device.address(), Views.span(device), true, device);
      return Views.at(memory, device.address(), device);
    }
  }
}
