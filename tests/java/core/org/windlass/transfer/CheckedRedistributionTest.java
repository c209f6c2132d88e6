// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.kernel.Target;
import org.windlass.testing.Launch;
import org.windlass.testing.Processes;

/**
 * The random transfers of {@link RedistributionTest} on the checked targets, by the instructions of
 * Ascend's architectures: some tensors as threads; in the long form 2,000, and some in each launch.
 */
@Timeout(600)
class CheckedRedistributionTest {
  private static final boolean IS_LONG = Boolean.getBoolean("windlass.long");
  private static final int BATCHES = IS_LONG ? 3 : 1; // of a process
  private static final int TENSORS_IN_LONG = 2000;
  private static final String SEED = "WINDLASS_TEST_SEED";

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"a2a3sim", "a5sim"})
  void everyTargetByteIsWhatTheReferenceSays(String target) throws Exception {
    int tensors = BATCHES * RedistributionTest.TENSORS_A_BATCH;
    Random seeds = new Random();
    for (int done = 0; done < (IS_LONG ? TENSORS_IN_LONG : tensors); done += tensors) {
      check(target, Long.getLong("windlass.seed", seeds.nextLong()));
    }
  }

  private void check(String target, long seed) throws Exception {
    try (Processes processes = new Processes(CheckedRedistributionTest.class, 1, folder)) {
      processes.with("WINDLASS_TARGET", target).with(SEED, String.valueOf(seed));
      Processes.Rank rank = processes.start("redistribute").get(0);
      assertThat(rank.ended())
          .as("seed %d (-Dwindlass.seed=%d runs it again)", seed, seed)
          .contains("on " + target);
    }
  }

  static void redistribute() {
    System.out.println("on " + Target.loaded() + ", seed " + System.getenv(SEED));
    Random random = new Random(Long.parseLong(System.getenv(SEED)));
    for (int batch = 0; batch < BATCHES; batch++) {
      RedistributionTest.checkBatch(random.nextLong(), Launch.THREADS);
    }
    if (IS_LONG) {
      RedistributionTest.checkBatch(random.nextLong(), Launch.PROCESSES);
      RedistributionTest.checkBatch(random.nextLong(), Launch.BOTH);
    }
  }
}
