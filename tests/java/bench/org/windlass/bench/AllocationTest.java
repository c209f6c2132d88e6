// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Algorithm;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.bench.data.SharedWords;
import org.windlass.bench.sample.LineUp;
import org.windlass.bench.sample.Stamps;
import org.windlass.bench.side.LibrarySide;
import org.windlass.bench.side.Operation;
import org.windlass.bench.side.Side;
import org.windlass.bench.workload.BarrierWorkload;
import org.windlass.bench.workload.CastWorkload;
import org.windlass.bench.workload.CollectiveWorkload;
import org.windlass.bench.workload.RedistributeWorkload;
import org.windlass.bench.workload.Workload;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;

/**
 * The sampling loop makes no garbage, so no collection falls into a sample. One rank: what it does
 * is what each of several does, and it waits for nobody on a busy machine.
 */
@Timeout(60)
class AllocationTest {
  private static final int ITERATIONS = 20_000;
  private static final Side WINDOW = new LibrarySide(Algorithm.AUTO, false);
  private static final Side PLAIN = new LibrarySide(Algorithm.AUTO, true);

  static Stream<Workload> workloads() {
    return Stream.of(
        new BarrierWorkload(WINDOW, 1),
        new CollectiveWorkload(WINDOW, Operation.ALL_TO_ALL, 1, 4096, DType.F32),
        new CollectiveWorkload(PLAIN, Operation.BROADCAST, 1, 4100, DType.F32),
        new CollectiveWorkload(PLAIN, Operation.ALL_GATHER, 1, 4096, DType.F32),
        new CollectiveWorkload(WINDOW, Operation.REDUCE_SCATTER, 1, 4096, DType.F32),
        new CollectiveWorkload(PLAIN, Operation.ALL_REDUCE, 1, 4096, DType.F32),
        new RedistributeWorkload(
            TensorSpec.of("bench", DType.F32, Layout.parse("1:S0"), 8, 8),
            TensorSpec.of("bench", DType.F32, Layout.parse("1@0:S1"), 8, 8),
            DType.BF16,
            TransferMode.DIRECT,
            false,
            Duration.ofSeconds(60)),
        new CastWorkload(1, 4096, DType.F32, DType.BF16, false));
  }

  @ParameterizedTest
  @MethodSource("workloads")
  void anIterationAllocatesNothing(Workload workload) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Stamps stamps = new Stamps(1, ITERATIONS);
    try (var group = LocalGroup.of(1)) {
      var allocated =
          group.call(
              comm -> {
                try (var words = new SharedWords(comm, LineUp.WORDS);
                    var work = workload.open(comm)) {
                  LineUp lineUp = new LineUp(words, comm, 2);
                  loop(work, lineUp, stamps, comm.rank());
                  long before = threads.getCurrentThreadAllocatedBytes();
                  loop(work, lineUp, stamps, comm.rank());
                  return threads.getCurrentThreadAllocatedBytes() - before;
                }
              });
      assertThat(allocated).allMatch(bytes -> bytes < ITERATIONS);
    }
  }

  private static void loop(Workload.RankWork work, LineUp lineUp, Stamps stamps, int rank) {
    for (int i = 0; i < ITERATIONS; i++) {
      work.rewrite(i);
      long ready = System.nanoTime();
      lineUp.meet();
      work.call();
      stamps.set(rank, i, ready, System.nanoTime());
    }
  }
}
