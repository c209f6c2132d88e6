// SPDX-License-Identifier: Apache-2.0
package org.windlass.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.DeadlineExceededException;

/** Windows that are closed while a peer may still touch them. */
@Timeout(120)
class RetiredWindowTest {
  private static final long BYTES = 256L << 20;

  private static long addressSpace() throws IOException {
    try (var lines = Files.lines(Path.of("/proc/self/status"))) {
      String size = lines.filter(line -> line.startsWith("VmSize:")).findFirst().orElseThrow();
      return Long.parseLong(size.replaceAll("\\D", "")) << 10;
    }
  }

  @Test
  void goWithTheLastRankThatIsOutOfItsCallThoughTheGroupIsStillReachable() throws Exception {
    boolean met = false;
    for (int attempt = 0; attempt < 20 && !met; attempt++) {
      met = closeDuringAPut();
    }
    assertThat(met).as("rank 1 was inside its call when rank 0 closed its window").isTrue();
  }

  /** False where rank 1 was out of its put, or not in it yet, when rank 0 closed. */
  private static boolean closeDuringAPut() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(Communicator::barrier);
      long before = addressSpace();
      Window[] windows = new Window[2];
      group.run(communicator -> windows[communicator.rank()] = communicator.window(BYTES));
      Tensor local = windows[1].tensorAt(0, DType.U8, BYTES);
      DistributedTensor remote = windows[1].tensorAt(0, DType.U8, BYTES);
      boolean[] moved = {false};
      Thread slow =
          new Thread(
              () -> {
                try {
                  windows[1].put(local, 0, remote);
                  moved[0] = true;
                } catch (DeadlineExceededException e) {
                  // The failure came before the put.
                }
              });
      slow.start();
      assertThatThrownBy(() -> group.communicator(0).withDeadline(Duration.ofMillis(10)).barrier())
          .isInstanceOf(DeadlineExceededException.class);
      windows[0].close();
      boolean inside = slow.isAlive();
      slow.join();
      windows[1].close();
      group.communicator(0).close();
      group.communicator(1).close();
      if (inside && moved[0]) {
        assertThat(addressSpace() - before).as("bytes still mapped").isLessThan(BYTES);
      }
      return inside && moved[0];
    }
  }
}
