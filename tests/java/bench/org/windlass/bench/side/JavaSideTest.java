// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.bench.sample.Sampler;
import org.windlass.bench.sample.Times;
import org.windlass.bench.workload.BarrierWorkload;
import org.windlass.bench.workload.CollectiveWorkload;
import org.windlass.bench.workload.Workload;
import org.windlass.error.VerificationFailedException;

/** The plain Java collectives leave the right bits, on either side of what is staged. */
@Timeout(120)
class JavaSideTest {
  /** Of each operation at each size. */
  private static final int CALLS = Boolean.getBoolean("windlass.long") ? 100 : 6;

  @ParameterizedTest
  @CsvSource({"1, 2", "2, 2", "3, 4", "3, 2", "8, 2"})
  void collectives(int ranks, int cores) {
    for (Operation operation : Operation.values()) {
      for (long bytes : new long[] {4, 60, 4096, 8192, 8196, 65536, 65540, 300_000}) {
        check(operation, ranks, cores, bytes);
      }
    }
  }

  /**
   * Nothing but the calls holds ranks together: each rewrites and verifies while others call. A
   * wrong output doesn't end its rank, for which the others would wait.
   */
  private static void check(Operation operation, int ranks, int cores, long bytes) {
    JavaSide side = new JavaSide(ranks, cores);
    CollectiveWorkload workload = new CollectiveWorkload(side, operation, ranks, bytes, DType.F32);
    Queue<String> wrong = new ConcurrentLinkedQueue<>();
    try (var group = LocalGroup.of(ranks)) {
      group.run(
          comm -> {
            Random random = new Random(comm.rank());
            try (var work = workload.open(comm)) {
              for (int i = 0; i < CALLS; i++) {
                work.rewrite(i);
                work.call();
                try {
                  work.verify(i);
                } catch (VerificationFailedException e) {
                  wrong.add(e.getMessage());
                }
                if (random.nextInt(4) == 0) {
                  LockSupport.parkNanos(100_000);
                }
              }
              for (int call = 0; call < 2 * ranks; call++) {
                work.stream(call);
              }
            }
          });
    }
    assertThat(wrong).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"1, 2", "2, 2", "3, 4", "8, 2"})
  void barriers(int ranks, int cores) {
    BarrierWorkload workload = new BarrierWorkload(new JavaSide(ranks, cores), ranks);
    try (var group = LocalGroup.of(ranks)) {
      group.run(
          comm -> {
            try (var work = workload.open(comm)) {
              for (int i = 0; i < CALLS; i++) {
                work.verify(i);
              }
            }
          });
    }
  }

  @Test
  void theSamplerTakesIt() {
    try (var group = LocalGroup.of(2)) {
      Workload workload =
          new CollectiveWorkload(new JavaSide(2, 2), Operation.ALL_REDUCE, 2, 4096, DType.F32);
      Times times = Times.of(new Sampler(group, workload, 2, 0.03, 1).run());
      assertThat(times.median()).isPositive().isLessThanOrEqualTo(times.p99());
      assertThat(times.floor()).isPositive();
    }
  }
}
