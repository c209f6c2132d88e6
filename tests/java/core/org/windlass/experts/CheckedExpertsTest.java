// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.Target;
import org.windlass.testing.Launch;
import org.windlass.testing.Processes;
import org.windlass.testing.Ranks;

/** The random dispatches of {@link ExpertParallelTest} by the instructions of Ascend's architectures. */
@Timeout(300)
class CheckedExpertsTest {
  private static final boolean IS_LONG = Boolean.getBoolean("windlass.long");
  private static final String SEED = "WINDLASS_TEST_SEED";
  private static final DType[] DTYPES = {DType.BF16, DType.F32, DType.F16};

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"a2a3sim", "a5sim"})
  void rowsAndSumsAreTheReferences(String target) throws Exception {
    long seed = Long.getLong("windlass.seed", new Random().nextInt());
    try (Processes processes = new Processes(CheckedExpertsTest.class, 1, folder)) {
      processes.with("WINDLASS_TARGET", target).with(SEED, String.valueOf(seed));
      Processes.Rank rank = processes.start("dispatch").get(0);
      assertThat(rank.ended()).as("seed %d", seed).contains("on " + target, "refused");
    }
  }

  static void dispatch() {
    System.out.println("on " + Target.loaded() + ", seed " + System.getenv(SEED));
    long seed = Long.parseLong(System.getenv(SEED));
    int rounds = IS_LONG ? 100 : 4;
    for (int count : new int[] {2, 4}) {
      new Ranks(Launch.THREADS, count)
          .run(
              comm -> {
                for (int round = 0; round < rounds; round++) {
                  ExpertCase.Router router = ExpertCase.Router.values()[round % 3];
                  ExpertParallelTest.check(
                      comm,
                      ExpertParallelTest.randomCase(
                          comm.size(), router, seed + round, DTYPES, false));
                }
              });
    }
    refused(
        ExpertOptions.of(1, 1, 8, 1, DType.BF16).withQuantised(true),
        "no instruction that finds the largest element");
    List<DType> lacking =
        Target.loaded() == Target.A5SIM
            ? List.of(DType.F64)
            : List.of(DType.F64, DType.F8E4M3, DType.F8E5M2);
    for (DType dtype : lacking) {
      refused(
          ExpertOptions.of(1, 1, 8, 1, dtype),
          "no arithmetic in which rows of " + dtype + " are weighed and added up");
    }
    System.out.println("refused");
  }

  private static void refused(ExpertOptions options, String why) {
    try (var group = LocalGroup.of(1)) {
      group.run(
          comm ->
              assertThatThrownBy(() -> ExpertParallel.open(comm, options))
                  .isInstanceOf(UnsupportedException.class)
                  .hasMessageContaining(why));
    }
  }
}
