// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;
import org.windlass.testing.CudaStandIn;
import org.windlass.testing.Launch;

/**
 * Redistribution on target cuda: the random transfers of {@link RedistributionTest} where hosts
 * have all memory, and where GPUs have it and bound views are tensors there.
 */
@Tag("devices")
@Timeout(180)
class DeviceRedistributionTest {
  private static final int BATCHES = 3; // of a process
  private static final int MOST_RANKS = 32; // blocks that a GPU of the stand-in runs at a time
  private static final int RANKS = 4;
  private static final int SIDE = 16;

  @TempDir Path folder;

  @ParameterizedTest(name = "{0} GPUs, all memory on them: {1}")
  @CsvSource({"1,false", "3,false", "1,true", "3,true"})
  void everyTargetByteIsWhatTheReferenceSays(int devices, boolean hasAllMemory) throws Exception {
    long seed = Long.getLong("windlass.seed", new Random().nextLong());
    assertThat(
            CudaStandIn.run(
                folder, devices, hasAllMemory, DeviceRedistributionTest.class, "random", "" + seed))
        .contains("on cuda, seed " + seed);
  }

  @Test
  void tensorsOfDevicesMoveInEitherMode() throws Exception {
    assertThat(CudaStandIn.run(folder, 3, true, DeviceRedistributionTest.class, "tensors", "0"))
        .contains("moved");
  }

  /** {@code random SEED}, or {@code tensors 0}. */
  public static void main(String[] arguments) {
    if (arguments[0].equals("tensors")) {
      try (LocalGroup group = LocalGroup.of(RANKS)) {
        group.run(DeviceRedistributionTest::moveTensors);
      }
      System.out.println("moved");
      return;
    }
    System.out.println("on " + Target.loaded() + ", seed " + arguments[1]);
    Random random = new Random(Long.parseLong(arguments[1]));
    for (int builder = 0; builder < BATCHES; builder++) {
      RedistributionTest.checkBatch(random.nextLong(), Launch.THREADS, MOST_RANKS);
    }
  }

  /** Rows to columns, f32 to bf16; each element is a whole number that both hold. */
  private static void moveTensors(Communicator comm) {
    long[] shape = {SIDE, SIDE};
    int part = SIDE / RANKS;
    for (TransferMode mode : new TransferMode[] {TransferMode.DIRECT, TransferMode.STAGED}) {
      float[] rows = new float[part * SIDE];
      for (int i = 0; i < rows.length; i++) {
        rows[i] = comm.rank() * rows.length + i;
      }
      Tensor source = Tensor.allocate(DType.F32, part, SIDE).copyFrom(rows);
      Tensor target = Tensor.allocate(DType.BF16, SIDE, part);
      TransferBuilder builder = TransferBuilder.of(comm).defaultMode(mode);
      builder.add(
          TensorSpec.of("w", DType.F32, Layout.parse("4:S0"), shape),
          BoundViews.of(source),
          TensorSpec.of("w", DType.BF16, Layout.parse("4:S1"), shape),
          BoundViews.of(target));
      try (Transfer transfer = builder.register()) {
        transfer.run();
        assertThat(transfer.progress().tensors()).isEqualTo(1);
      }
      for (int row = 0; row < SIDE; row++) {
        for (int column = 0; column < part; column++) {
          assertThat(target.getDouble(row, column))
              .isEqualTo(row * SIDE + comm.rank() * part + column);
        }
      }
    }
  }
}
