// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.KernelLibrary;
import org.windlass.kernel.Target;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.testing.TestKernels;

/**
 * Kernels of a library: in every launch against what they are to move, how they end, and files that
 * are none. What WrongCallsTest has of their arguments is not here.
 */
@Timeout(120)
class LaunchTest {
  @OnRanks({1, 2, 3, 4, 7})
  void shiftsWhatRanksHold(Ranks ranks) {
    ranks.run(
        comm -> {
          Kernel shift = TestKernels.kernel("shift");
          for (long count : new long[] {0, 1, 33, 5000}) {
            try (Window window = comm.window(4 * count + 64);
                Tensor in = Tensor.allocate(DType.F32, count)) {
              window.tensor(DType.U8, 3);
              DistributedTensor out = window.tensor(DType.F32, count);
              for (int steps = 0; steps < comm.size() + 2; steps++) {
                for (long i = 0; i < count; i++) {
                  in.setDouble(1000 * comm.rank() + i % 100 + steps, i);
                }
                comm.launch(shift, in, out, steps);
                int from = Math.floorMod(comm.rank() - steps, comm.size());
                for (long i = 0; i < count; i++) {
                  assertThat(out.getDouble(i)).isEqualTo(1000 * from + i % 100 + steps);
                }
              }
            }
          }
        });
  }

  @OnRanks({1, 2, 3, 4})
  void runsPhasesInTheOrderThatTheyNeed(Ranks ranks) {
    ranks.run(
        comm -> {
          Kernel gather = TestKernels.kernel("ring_gather");
          try (Window window = comm.window(comm.size() * 777L * 8);
              Tensor in = Tensor.allocate(DType.I64, 777)) {
            DistributedTensor out = window.tensor(DType.I64, comm.size(), 777);
            for (int round = 0; round < 5; round++) {
              in.fill(100L * comm.rank() + round);
              comm.launch(gather, in, out);
              for (int rank = 0; rank < comm.size(); rank++) {
                for (long i : new long[] {0, 300, 776}) {
                  assertThat(out.getLong(rank, i)).isEqualTo(100L * rank + round);
                }
              }
              comm.barrier();
            }
          }
        });
  }

  @Test
  void takesScalarsOfEachKindFromAnyThread() {
    Kernel scalars = TestKernels.kernel("scalars");
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            Tensor in = Tensor.allocate(DType.I16, 30, 40).fill(7);
            Tensor out = Tensor.allocate(DType.I16, 30, 40);
            comm.runAsync(c -> c.launch(scalars, in, out, -3, 1L << 10, 11f, -22.0)).await();
            comm.withDeadline(Duration.ofSeconds(20)).launch(scalars, in, out, 0, 0L, 0f, 0.0);
            for (int i = 0; i < 1200; i++) {
              assertThat(out.getLong(i / 40, i % 40)).isEqualTo(i < 1010 ? 7 : 0);
            }
          });
    }
  }

  @Test
  void ranksThatDisagreeAreTold() {
    Kernel shift = TestKernels.kernel("shift");
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            Window window = comm.window(64);
            DistributedTensor out = window.tensor(DType.F32, 8);
            Tensor in = Tensor.allocate(DType.F32, 8);
            assertThatThrownBy(() -> comm.launch(shift, in, out, comm.rank()))
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("launch of shift")
                .hasMessageContaining("argument 2, steps, is ");
            in.close();
            window.close();
          });
    }
  }

  @Test
  void endsAtTheDeadline() {
    Kernel shift = TestKernels.kernel("shift");
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            Window window = comm.window(64);
            if (comm.rank() == 1) {
              while (comm.failure().isEmpty()) {
                Thread.onSpinWait();
              }
              window.close();
              return;
            }
            DistributedTensor out = window.tensor(DType.F32, 8);
            Tensor in = Tensor.allocate(DType.F32, 8);
            Collectives soon = comm.withDeadline(Duration.ofMillis(200));
            Throwable thrown = catchThrowable(() -> soon.launch(shift, in, out, 1));
            assertThat(thrown)
                .isInstanceOf(DeadlineExceededException.class)
                .hasMessageContaining("launch of shift")
                .hasMessageContaining("rank 1 has not come");
            assertThat(((WindlassException) thrown).operation()).isEqualTo("launch");
            window.close();
          });
    }
  }

  @Test
  void aLibrarySaysWhatItHas() {
    KernelLibrary library = KernelLibrary.load(TestKernels.FILE, Target.SIM);
    assertThat(library.kernels()).extracting(Kernel::name).contains("shift", "ring_gather");
    assertThat(library.kernel("shift"))
        .hasToString("shift(f32 in, distributed written f32 out, scalar i32 steps)");
    assertThat(library.kernel("shift").library()).isSameAs(library);
    assertThat(library.path()).isEqualTo(TestKernels.FILE);
    assertThat(library.target()).isEqualTo(Target.SIM);
    assertThat(library).hasToString("library " + TestKernels.FILE);
  }

  @Test
  void filesThatAreNoneAreRefused(@TempDir Path folder) throws IOException {
    byte[] bytes = Files.readAllBytes(TestKernels.FILE);
    assertThatThrownBy(() -> KernelLibrary.load(folder.resolve("x.so"), Target.SIM))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("x.so: No such file");
    Path half = Files.write(folder.resolve("half.so"), java.util.Arrays.copyOf(bytes, 5000));
    assertThatThrownBy(() -> KernelLibrary.load(half, Target.SIM))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("half.so is cut short");
    bytes[18] ^= 1; // the machine
    Path other = Files.write(folder.resolve("other.so"), bytes);
    assertThatThrownBy(() -> KernelLibrary.load(other, Target.SIM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("is built for another machine");
    assertThatThrownBy(() -> KernelLibrary.load(TestKernels.FILE, Target.A5SIM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("built for target sim, and was to be for a5sim");
    Path natives = Path.of(System.getProperty("org.windlass.library.path"), "libwindlass.so");
    assertThatThrownBy(() -> KernelLibrary.load(natives, Target.SIM))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("no symbol windlass_kernel_table");
  }
}
