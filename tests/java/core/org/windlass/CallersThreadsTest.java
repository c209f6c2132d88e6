// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.internal.Native;

/** Which threads operations may move and reschedule: those that Windlass makes. */
@Timeout(60)
class CallersThreadsTest {
  private static final int RANKS = 4;

  /** The shortest slice that the kernel grants, for which operations ask. */
  private static final String SHORT_SLICE_NS = "100000";

  @Test
  void rankThreadsAreWindlasssOwn() {
    try (LocalGroup group = LocalGroup.of(2)) {
      List<Integer> adopted =
          group.call(
              communicator -> {
                communicator.barrier();
                return Native.wl_thread_adopt(-1, 0);
              });
      assertThat(adopted).containsOnly(1);
    }
  }

  @Test
  void theThreadOfAsynchronousCallsIsWindlasssOwn() {
    try (LocalGroup group = LocalGroup.of(1)) {
      assertThat(group.communicator(0).supplyAsync(c -> Native.wl_thread_adopt(-1, 0)).await())
          .isEqualTo(1);
    }
  }

  /** Ranks share cores with threads that compute, which is where operations take short slices. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void callersThreadsTakeShortSlicesWhereTheOptionSaysSoAlone(boolean adjusts) throws Exception {
    assumeTrue(slice().isPresent(), "the kernel grants no slices");
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withAdjustThreads(adjusts).withCores(2).withBlocks(1);
    List<FutureTask<List<String>>> calls = new ArrayList<>();
    AtomicBoolean over = new AtomicBoolean();
    try (LocalGroup group = LocalGroup.of(RANKS, options)) {
      computeOnEveryCore(over);
      for (int rank = 0; rank < RANKS; rank++) {
        Communicator communicator = group.communicator(rank);
        FutureTask<List<String>> call = new FutureTask<>(() -> slices(communicator, adjusts));
        calls.add(call);
        new Thread(call, "caller").start();
      }
      for (FutureTask<List<String>> call : calls) {
        List<String> beforeAndAfter = call.get();
        String expected = adjusts ? SHORT_SLICE_NS : beforeAndAfter.get(0);
        assertThat(beforeAndAfter.get(1)).isEqualTo(expected);
      }
    } finally {
      over.set(true);
    }
  }

  /**
   * This thread's time slice before it meets threads that compute, and the last other one that it had
   * beside them, if any.
   *
   * @param changes whether it is to have another one
   */
  private static List<String> slices(Communicator communicator, boolean changes)
      throws IOException {
    String before = slice().orElseThrow();
    String other = before;
    Tensor ready = Tensor.allocate(DType.I64, 1);
    Tensor least = Tensor.allocate(DType.I64, 1);
    while (least.getLong(0) == 0) {
      for (int i = 0; i < 50; i++) {
        communicator.barrier();
      }
      String now = slice().orElseThrow();
      other = now.equals(before) ? other : now;
      boolean hasMet = communicator.report().ranks().get(communicator.rank()).contested() > 0;
      // Ranks come to it one by one; they stop together.
      boolean isReady = hasMet && (!changes || !other.equals(before));
      communicator.allReduce(ready.fill(isReady ? 1 : 0), least, ReduceOp.MIN);
    }
    assertThat(Native.wl_thread_adopt(-1, 0)).isZero();
    return List.of(before, other);
  }

  /** What the kernel says of this thread; a kernel before 6.12 knows no slices of threads. */
  private static Optional<String> slice() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/thread-self/sched"))) {
      return lines
          .filter(line -> line.startsWith("se.slice "))
          .map(line -> line.replaceAll(".*: *", ""))
          .findFirst();
    } catch (NoSuchFileException e) {
      return Optional.empty();
    }
  }

  private static void computeOnEveryCore(AtomicBoolean over) {
    for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
      Thread thread =
          new Thread(
              () -> {
                while (!over.get()) {
                  Thread.onSpinWait();
                }
              },
              "busy");
      thread.setDaemon(true);
      thread.start();
    }
  }
}
