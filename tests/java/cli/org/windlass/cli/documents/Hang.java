// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static java.time.Duration.ofMillis;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.DeadlineExceededException;

/** Four ranks, of which the last comes to an all-reduce late, and to the next one not at all. */
final class Hang {
  private static final long LIMIT_S = 30;

  private final List<String> told = Collections.synchronizedList(new ArrayList<>());
  private final CountDownLatch over = new CountDownLatch(1);

  private Hang() {}

  /** What a report says while it is late, and what rank 0 is told when its deadline has passed. */
  static List<String> told() throws Exception {
    Hang hang = new Hang();
    try (var group = LocalGroup.of(4)) {
      group.run(
          comm -> {
            try (var window = comm.window(1 << 20)) {
              hang.play(
                  comm,
                  window.tensor(DType.F32, 4, 1024),
                  window.tensor(DType.F32, 4, 1024),
                  window.tensor(DType.F32, 4096));
            }
          });
    }
    return hang.told;
  }

  private void play(Communicator comm, Tensor in, Tensor out, Tensor sum) throws Exception {
    for (int i = 0; i < 40; i++) {
      comm.barrier();
    }
    comm.allToAll(in, out);
    if (comm.rank() == 3) {
      told.add(reportOnceInAllReduce(comm, 3));
    }
    comm.allReduce(sum, ReduceOp.SUM);
    comm.allToAll(in, out);
    switch (comm.rank()) {
      case 3 -> assertThat(over.await(LIMIT_S, TimeUnit.SECONDS)).isTrue();
      case 0 -> {
        reportOnceInAllReduce(comm, 2);
        Throwable late =
            catchThrowable(() -> comm.withDeadline(ofMillis(200)).allReduce(sum, ReduceOp.SUM));
        over.countDown();
        assertThat(late).isInstanceOf(DeadlineExceededException.class);
        told.add(late.getMessage());
      }
      default -> assertThat(catchThrowable(() -> comm.allReduce(sum, ReduceOp.SUM))).isNotNull();
    }
  }

  /** The report in which so many ranks are in an all-reduce, and the others have left what came. */
  private static String reportOnceInAllReduce(Communicator comm, int ranks)
      throws InterruptedException {
    long start = System.nanoTime();
    while (true) {
      String report = comm.report().toString();
      if (report.split("in all-reduce", -1).length == ranks + 1
          && report.split("left all-to-all", -1).length == comm.size() - ranks + 1) {
        return report;
      }
      assertThat(System.nanoTime() - start).as(report).isLessThan(LIMIT_S * 1_000_000_000);
      Thread.sleep(5);
    }
  }
}
