// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.report.Report;
import org.windlass.testing.Processes;
import org.windlass.testing.Resources;

/**
 * Ranks that are processes: hangs and failures, and what starts leave behind. Methods without
 * {@code @Test} are what the ranks run.
 */
@Timeout(180)
class ProcessesTest {
  private static final Duration SOON = Duration.ofSeconds(60);

  @TempDir Path folder;

  private void run(int size, String body) throws Exception {
    try (Processes processes = new Processes(ProcessesTest.class, size, folder)) {
      processes.run(body);
    }
  }

  private static Communicator start() {
    return Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON);
  }

  @Test
  void aHangIsReportedAndAnAbortEndsIt() throws Exception {
    run(3, "abort");
  }

  static void abort() throws Exception {
    Communicator comm = start();
    if (comm.rank() != 1) {
      WindlassException failure = (WindlassException) catchThrowable(comm::barrier);
      assertThat(failure).isInstanceOf(AbortedException.class).hasMessageContaining("it is enough");
      assertThat(failure.faultyRanks()).containsExactly(1);
    } else {
      awaitOthersIn("barrier", comm);
      Report report = comm.report();
      assertThat(report.ranks()).hasSize(3);
      assertThat(report.toString()).contains("in barrier");
      comm.abort("it is enough");
    }
    assertThat(comm.failure()).isPresent();
    comm.close();
  }

  @Test
  void aKilledRankIsNamedToThoseWhoWaitForIt() throws Exception {
    try (Processes processes = new Processes(ProcessesTest.class, 3, folder)) {
      List<Processes.Rank> ranks = processes.start("lostPeer");
      ranks.get(1).await("the others wait");
      ranks.get(1).kill();
      for (int rank : new int[] {0, 2}) {
        assertThat(ranks.get(rank).ended())
            .contains("process " + ranks.get(1).pid() + " on ")
            .contains(" has ended: rank 1 is lost: it finished barrier #") // what it did last
            .contains("it is in all-reduce(1000 x f32, sum, "); // and what others wait in
      }
    }
  }

  static void lostPeer() throws Exception {
    try (Communicator comm = start();
        Window window = comm.window(1 << 20)) {
      Tensor tensor = window.tensor(DType.F32, 1000);
      comm.barrier();
      if (comm.rank() == 1) {
        awaitOthersIn("all-reduce(", comm);
        System.out.println("the others wait");
        Thread.sleep(SOON.toMillis());
        return;
      }
      WindlassException lost =
          (WindlassException) catchThrowable(() -> comm.allReduce(tensor, ReduceOp.SUM));
      assertThat(lost).isInstanceOf(PeerLostException.class);
      assertThat(lost.faultyRanks()).containsExactly(1);
      assertThatThrownBy(comm::barrier).isInstanceOf(PeerLostException.class);
      System.out.println("lost: " + lost.getMessage());
    }
  }

  /** Until ranks 0 and 2 wait for rank 1, which is this one. */
  private static void awaitOthersIn(String operation, Communicator comm)
      throws InterruptedException {
    long start = System.nanoTime();
    while (!List.of(0, 2).stream()
        .map(comm.report().ranks()::get)
        .allMatch(
            rank ->
                rank.waitsFor().contains(1)
                    && rank.current().toString().contains(operation))) {
      assertThat(System.nanoTime() - start).isLessThan(SOON.toNanos());
      Thread.sleep(10);
    }
  }

  @Test
  void aRankThatIsKilledDuringTheStartIsNamed() throws Exception {
    try (Processes processes = new Processes(ProcessesTest.class, 3, folder)) {
      Processes.Rank first = processes.start(0, "failedStart");
      Processes.Rank killed = processes.start(1, "failedStart");
      first.await("starts");
      killed.await("starts");
      Thread.sleep(500);
      killed.kill(); // while both wait for rank 2
      assertThat(first.ended()).contains("failed: ranks 1, 2 of 3 had not joined at");
    }
  }

  static void failedStart() {
    // Loads what it takes. Rank 0 may give up first, which closes its store.
    assertThat(failureOfStart(Duration.ofMillis(500)))
        .isInstanceOfAny(DeadlineExceededException.class, PeerLostException.class);
    Resources before = Resources.now();
    System.out.println("starts");
    Throwable failure = failureOfStart(Duration.ofSeconds(3));
    assertThat(failure).isInstanceOf(DeadlineExceededException.class);
    System.out.println("failed: " + failure.getMessage());
    before.requireNoMoreNow();
  }

  private static Throwable failureOfStart(Duration deadline) {
    return catchThrowable(
        () -> Communicator.fromEnvironment(CommunicatorOptions.defaults(), deadline));
  }

  @Test
  void startsInARowLeaveNothingBehind() throws Exception {
    run(2, "startsInARow");
  }

  static void startsInARow() {
    onceMore();
    Resources before = Resources.now();
    for (int i = 0; i < (Boolean.getBoolean("windlass.long") ? 200 : 5); i++) {
      onceMore();
    }
    before.requireNoMoreNow();
  }

  private static void onceMore() {
    try (Communicator comm = start()) {
      assertSums(comm, 100_000, comm.rank(), 1);
      comm.barrier();
    }
  }

  @Test
  void manyProcessesStart() throws Exception {
    run(Boolean.getBoolean("windlass.long") ? 64 : 6, "join");
  }

  static void join() {
    try (Communicator comm = start()) {
      assertSums(comm, 4, 1, comm.size());
      comm.barrier();
    }
  }

  /** In a window, of elements that are all {@code own}. */
  private static void assertSums(Communicator comm, int count, float own, float sum) {
    try (Window window = comm.window(4L * count)) {
      Tensor tensor = window.tensor(DType.F32, count);
      tensor.fill(own);
      comm.allReduce(tensor, ReduceOp.SUM);
      float[] sums = new float[count];
      tensor.copyTo(sums);
      float[] expected = new float[count];
      Arrays.fill(expected, sum);
      assertThat(sums).isEqualTo(expected);
    }
  }
}
