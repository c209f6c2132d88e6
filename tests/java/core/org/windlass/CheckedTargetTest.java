// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.DeviceException;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.Kernel;
import org.windlass.kernel.Target;
import org.windlass.report.KernelProfile;
import org.windlass.testing.Processes;
import org.windlass.testing.TestKernels;

/** Processes that run the kernels of Ascend's architectures, checked. */
@Timeout(120)
class CheckedTargetTest {
  private static final Duration SOON = Duration.ofSeconds(60);

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"a2a3sim", "a5sim"})
  void ranksAreThreadsAndProcesses(String target) throws Exception {
    try (Processes processes = new Processes(CheckedTargetTest.class, 2, folder)) {
      processes.with("WINDLASS_TARGET", target);
      for (Processes.Rank rank : processes.start("sums")) {
        assertThat(rank.ended())
            .contains(
                "target " + target,
                "threads agree",
                "sums are counted",
                "processes agree",
                "a mistake is told",
                "what is only read stays",
                "a race of two cores is told");
      }
    }
  }

  @Test
  void anotherTargetCountsNothing() {
    assertThatThrownBy(() -> KernelProfile.start(true))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("target sim does not count what kernels do");
    assertThatThrownBy(KernelProfile::all).isInstanceOf(UnsupportedException.class);
    assertThatThrownBy(KernelProfile::trace).isInstanceOf(UnsupportedException.class);
  }

  static void sums() throws IOException {
    System.out.println("target " + Target.loaded());
    assertThatThrownBy(Target.SIM::use).isInstanceOf(UnsupportedException.class);
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(SOON);
    KernelProfile.start(true);
    try (LocalGroup group = LocalGroup.of(3, options)) {
      group.run(CheckedTargetTest::sum);
    }
    System.out.println("threads agree");
    requireCounted();
    System.out.println("sums are counted");
    try (Communicator communicator = Communicator.fromEnvironment(options, SOON)) {
      sum(communicator);
    }
    System.out.println("processes agree");
    try (LocalGroup group = LocalGroup.of(3, options)) {
      KernelProfile.start(true);
      group.run(CheckedTargetTest::launch);
    }
    requireLaunchCounted();
    System.out.println("a mistake is told");
    try (LocalGroup group = LocalGroup.of(1, options)) {
      group.run(CheckedTargetTest::storeToWhatIsRead);
    }
    System.out.println("what is only read stays");
    try (LocalGroup group = LocalGroup.of(1, options.withBlocks(2))) {
      group.run(CheckedTargetTest::raceOnTwoCores);
    }
    System.out.println("a race of two cores is told");
  }

  /** A kernel that stores to an argument that isn't written(), over memory that can't be. */
  private static void storeToWhatIsRead(Communicator communicator) throws IOException {
    Path file = Files.write(Files.createTempFile("windlass", ".bin"), new byte[4000]);
    try (FileChannel channel = FileChannel.open(file);
        Window window = communicator.window(4000)) {
      Tensor in =
          Tensor.of(
              channel.map(FileChannel.MapMode.READ_ONLY, 0, 4000).order(ByteOrder.nativeOrder()),
              DType.F32,
              1000);
      DistributedTensor out = window.tensor(DType.F32, 1000);
      Kernel stores = TestKernels.kernel("mistakes", "stores_to_input");
      assertThatThrownBy(() -> communicator.launch(stores, in, out, 1))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining("not-written: kernel stores_to_input, rank 0, block 0, instruction 8")
          .hasMessageContaining("lies in argument in, which isn't `written()`");
      assertThat(in.getDouble(0)).isZero();
    } finally {
      Files.delete(file);
    }
  }

  private static void raceOnTwoCores(Communicator communicator) {
    try (Window window = communicator.window(4000)) {
      DistributedTensor out = window.tensor(DType.F32, 1000);
      Tensor in = Tensor.allocate(DType.F32, 1000);
      Kernel both = TestKernels.kernel("mistakes", "same_from_both");
      assertThatThrownBy(() -> communicator.launch(both, in, out, 0))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining("memory-race: kernel same_from_both, rank 0, block ");
    }
  }

  /** A kernel of a library that keeps the rules, and one that doesn't. */
  private static void launch(Communicator communicator) {
    Window window = communicator.window(4000);
    DistributedTensor out = window.tensor(DType.F32, 1000);
    Tensor in = Tensor.allocate(DType.F32, 1000).fill(communicator.rank());
    communicator.launch(TestKernels.kernel("test_kernels", "shift"), in, out, 1);
    int from = (communicator.rank() + 2) % 3;
    assertThat(out.getDouble(0)).isEqualTo(from);
    assertThat(out.getDouble(999)).isEqualTo(from);
    Kernel noFlag = TestKernels.kernel("mistakes", "no_flag");
    assertThatThrownBy(() -> communicator.launch(noFlag, in, out, 1))
        .isInstanceOf(DeviceException.class)
        .hasMessageContaining("breaks what " + communicator.target() + " allows: ")
        .hasMessageContaining("tile-race: kernel no_flag, rank ")
        .hasMessageContaining("put set_flag and wait_flag");
    window.close();
  }

  /** Each of 3 ranks shifted 1,000 elements; whether the other launch ended everywhere is open. */
  private static void requireLaunchCounted() {
    KernelProfile shift =
        KernelProfile.all().stream()
            .filter(each -> each.kernel().equals("launch of shift"))
            .findFirst()
            .orElseThrow();
    assertThat(shift.runs()).isEqualTo(3);
    assertThat(shift.engines().get(KernelProfile.Engine.MTE2).bytes()).isEqualTo(3 * 4000);
    assertThat(shift.engines().get(KernelProfile.Engine.MTE3).bytes()).isEqualTo(3 * 4000);
    assertThat(shift.cycles()).isPositive();
    assertThat(KernelProfile.trace()).contains("\"name\":\"TLOAD of TPUT\",\"cat\":\"launch of shift\"");
    KernelProfile.start(false);
  }

  private static void requireCounted() {
    List<KernelProfile> all = KernelProfile.all();
    assertThat(all).extracting(KernelProfile::kernel).contains("all-reduce", "barrier").isSorted();
    KernelProfile sum =
        all.stream().filter(each -> each.kernel().equals("all-reduce")).findFirst().orElseThrow();
    assertThat(sum.runs()).isEqualTo(2 * 3);
    assertThat(sum.engines()).containsOnlyKeys(KernelProfile.Engine.values());
    // The input rides with ENTER: each rank loads that of all, and stores its own output.
    assertThat(sum.engines().get(KernelProfile.Engine.MTE3).bytes()).isEqualTo(2 * 3 * 2000);
    assertThat(sum.engines().get(KernelProfile.Engine.MTE2).bytes()).isEqualTo(2 * 3 * 3 * 2000);
    assertThat(sum.cycles()).isPositive();
    assertThat(sum.bufferBytes()).isPositive();
    assertThat(KernelProfile.trace())
        .startsWith("{\"traceEvents\":[")
        .contains("\"name\":\"TADD\",\"cat\":\"all-reduce\"", "rank 2")
        .endsWith("}\n");
    KernelProfile.start(false);
    assertThat(KernelProfile.all()).isEmpty();
    assertThat(KernelProfile.trace()).doesNotContain("TADD");
  }

  /** In a window and outside, in a dtype whose sums go by way of another. */
  private static void sum(Communicator communicator) {
    int ranks = communicator.size();
    try (Window window = communicator.window(1 << 16)) {
      for (Tensor tensor :
          List.of(window.tensor(DType.BF16, 1000), Tensor.allocate(DType.BF16, 1000))) {
        tensor.fill(communicator.rank() + 1);
        communicator.allReduce(tensor, ReduceOp.SUM);
        assertThat(tensor.getDouble(0)).isEqualTo(ranks * (ranks + 1) / 2.0);
        assertThat(tensor.getDouble(999)).isEqualTo(ranks * (ranks + 1) / 2.0);
      }
    }
    Tensor lacking = Tensor.allocate(DType.F64, 4);
    assertThatThrownBy(() -> communicator.allReduce(lacking, ReduceOp.SUM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("f64")
        .hasMessageContaining(communicator.target().toString());
    communicator.barrier();
  }
}
