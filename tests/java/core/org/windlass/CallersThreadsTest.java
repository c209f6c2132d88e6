// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Native;

/** Which threads operations may move and reschedule: those that Windlass makes. */
@Timeout(60)
class CallersThreadsTest {
  @Test
  void rankThreadsAreWindlasssOwn() {
    try (LocalGroup group = Communicator.local(2)) {
      List<Integer> adopted =
          group.call(
              communicator -> {
                communicator.barrier();
                return Native.wl_thread_adopt();
              });
      assertThat(adopted).containsOnly(1);
    }
  }

  @Test
  void theThreadOfAsynchronousCallsIsWindlasssOwn() {
    try (LocalGroup group = Communicator.local(1)) {
      assertThat(group.communicator(0).asyncCall(c -> Native.wl_thread_adopt()).await())
          .isEqualTo(1);
    }
  }

  @Test
  void callersThreadsAreLeftAsTheyAre() throws Exception {
    int ranks = 4;
    try (LocalGroup group = Communicator.local(ranks, CommunicatorOptions.defaults().withCores(2))) {
      List<FutureTask<Integer>> calls = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        Communicator communicator = group.communicator(rank);
        FutureTask<Integer> call = new FutureTask<>(() -> useAndCompare(communicator));
        calls.add(call);
        new Thread(call, "caller").start();
      }
      for (FutureTask<Integer> call : calls) {
        assertThat(call.get()).isZero();
      }
    }
  }

  private static int useAndCompare(Communicator communicator) throws IOException {
    List<String> before = allowed();
    for (int i = 0; i < 1000; i++) {
      communicator.barrier();
    }
    assertThat(allowed()).isEqualTo(before);
    return Native.wl_thread_adopt();
  }

  private static List<String> allowed() throws IOException {
    try (var lines = Files.lines(Path.of("/proc/thread-self/status"))) {
      return lines.filter(line -> line.startsWith("Cpus_allowed")).toList();
    }
  }

  @Test
  void theOptionIsHandedOn() {
    CommunicatorOptions options = CommunicatorOptions.defaults();
    assertThat(options.adjustThreads()).isFalse();
    assertThat(options.withAdjustThreads(true).withCores(2).withBlocks(1).adjustThreads()).isTrue();
    try (LocalGroup group = Communicator.local(2, options.withAdjustThreads(true))) {
      group.run(Communicator::barrier);
    }
  }
}
