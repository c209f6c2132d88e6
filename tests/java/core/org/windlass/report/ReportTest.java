// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Algorithm;
import org.windlass.Collectives;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.ErrorCode;

/** What another thread sees of ranks that run, hang, fail and leave. */
@Timeout(60)
class ReportTest {
  private static Report await(Communicator communicator, Predicate<Report> seen) {
    Report report = communicator.report();
    for (long start = System.nanoTime(); !seen.test(report); report = communicator.report()) {
      assertThat(System.nanoTime() - start).as(report.toString()).isLessThan(20_000_000_000L);
    }
    return report;
  }

  @Test
  void anyDurationIsShown() {
    Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
    Report none = new Report(List.of(), Optional.empty(), "");
    JobReport.Group group =
        new JobReport.Group("1", Optional.empty(), List.of(), longest, none);
    assertThat(group.toString()).contains("made 922337203685477");
  }

  private static Thread start(Runnable body) {
    Thread thread = new Thread(body);
    thread.start();
    return thread;
  }

  /** Ranks 0 and 1 have done an all-to-all and wait in a barrier for rank 2. */
  @ParameterizedTest
  @ValueSource(ints = {1, 64})
  void aHangShowsWhoIsWhereSinceWhenAndForWhom(int cores) throws Exception {
    CommunicatorOptions options = CommunicatorOptions.defaults().withCores(cores);
    try (LocalGroup group = LocalGroup.of(3, options)) {
      group.run(
          communicator -> {
            Tensor in = Tensor.allocate(DType.F32, 3, 1024);
            communicator.allToAll(in, Tensor.allocate(DType.F32, 3, 1024), Algorithm.PUSH);
          });
      List<Thread> hanging = new ArrayList<>();
      for (int rank : new int[] {0, 1}) {
        hanging.add(start(group.communicator(rank)::barrier));
      }
      Communicator other = group.communicator(2);
      await(
          other,
          seen -> seen.ranks().subList(0, 2).stream().allMatch(r -> r.waitsFor().contains(2)));
      Thread.sleep(60);
      Report report = other.report();
      for (Report.Rank rank : report.ranks().subList(0, 2)) {
        Report.Call call = rank.current().orElseThrow();
        assertThat(call.toString()).isEqualTo("barrier #2");
        assertThat(call.algorithm()).isEmpty();
        assertThat(call.took()).isBetween(Duration.ofMillis(60), Duration.ofSeconds(30));
        assertThat(call.since()).isEqualTo(call.took());
        assertThat(rank.waitsFor()).contains(2);
        assertThat(rank.recent()).hasSize(2);
      }
      Report.Rank late = report.ranks().get(2);
      assertThat(late.current()).isEmpty();
      assertThat(late.waitsFor()).isEmpty();
      Report.Call last = late.recent().get(0);
      assertThat(last.text()).isEqualTo("all-to-all(1024 x f32 to each rank, push)");
      assertThat(last.operation()).isEqualTo("all-to-all");
      assertThat(last.algorithm()).contains("push");
      assertThat(last.sequence()).isEqualTo(1);
      assertThat(last.bytes()).isEqualTo(4096);
      assertThat(last.failure()).isEmpty();
      assertThat(last.since()).isBetween(Duration.ofMillis(60), Duration.ofSeconds(30));
      assertThat(report.failure()).isEmpty();

      String[] lines = report.toString().split("\n");
      assertThat(lines).hasSize(4);
      assertThat(lines[0]).isEqualTo("rank    since  busy  where");
      assertThat(lines[1]).matches("   0 +\\d+\\.?\\d* m?s +\\d+  in barrier #2, waits for (1, )?2");
      assertThat(lines[3])
          .matches("   2 +\\S+ m?s +\\d+  left all-to-all\\(1024 x f32 to each rank, push\\) #1");

      group.communicator(2).barrier();
      for (Thread thread : hanging) {
        thread.join();
      }
      Report.Call waited = other.report().ranks().get(0).recent().get(0);
      assertThat(waited.inside()).isFalse();
      assertThat(waited.waited()).isBetween(Duration.ofMillis(50), waited.took());
    }
  }

  @Test
  void aOneSidedWaitNamesThePeerThatItConcerns() {
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          communicator -> {
            try (Window window = communicator.window(4096)) {
              Signals signals = window.signals(1);
              if (communicator.rank() == 2) {
                signals.await(1, 0, 5);
              } else if (communicator.rank() == 1) {
                Report report =
                    await(
                        communicator,
                        seen ->
                            seen.ranks().get(2).current().filter(Report.Call::uncounted).isPresent()
                                && seen.ranks().get(2).waitsFor().contains(1));
                Report.Call call = report.ranks().get(2).current().orElseThrow();
                assertThat(call.toString()).isEqualTo("wait(value 5 from rank 1) after #1");
                assertThat(report.ranks().get(2).waitsFor()).containsExactly(1);
                signals.notify(2, 0, 5);
              }
              communicator.barrier();
            }
          });
    }
  }

  @Test
  void aFreshCommunicatorHasNothingToSay() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Report report = group.communicator(1).report();
      assertThat(report.ranks()).hasSize(2).allMatch(rank -> rank.recent().isEmpty());
      assertThat(report.toString()).containsPattern("\n   1 +0  no call yet");
    }
  }

  @Test
  void aFailureStandsFirstAndAClosedRankIsMarked() {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator first = group.communicator(0);
      Collectives hasty = first.withDeadline(Duration.ofMillis(50));
      assertThat(catchThrowable(hasty::barrier)).isInstanceOf(DeadlineExceededException.class);
      group.communicator(1).close();
      Report report = first.report();
      assertThat(report.failure()).get().isInstanceOf(DeadlineExceededException.class);
      Report.Call call = report.ranks().get(0).recent().get(0);
      assertThat(call.failure()).contains(ErrorCode.DEADLINE_EXCEEDED);
      assertThat(call.took()).isGreaterThanOrEqualTo(Duration.ofMillis(50));
      assertThat(report.ranks()).extracting(Report.Rank::closed).containsExactly(false, true);
      assertThat(report.toString())
          .startsWith("the communicator is dead: rank 0 waited 0.050 s in barrier")
          .containsPattern("\n   0 .*  DeadlineExceeded in barrier #1")
          .containsPattern("\n   1 +0  closed, no call yet");
    }
  }

  @Test
  void aPassedDeadlineSaysWhatTheRankThatIsBehindDidLast() {
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(100));
    try (LocalGroup group = LocalGroup.of(2, options)) {
      group.run(communicator -> communicator.allGather(ints(1), ints(2)));
      assertThat(catchThrowable(group.communicator(0)::barrier))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("rank 1 has not come: it finished all-gather(1 x i32 of each rank) #1 ")
          .hasMessageContaining(" ms ago");
    }
  }

  private static Tensor ints(int count) {
    return Tensor.allocate(DType.I32, count);
  }

  /** Every look is of whole records in order, whatever the ranks do meanwhile. */
  @Test
  void anyThreadLooksWhileRanksRun() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      AtomicBoolean looking = new AtomicBoolean(true);
      List<Throwable> wrong = new ArrayList<>();
      Thread reader =
          start(
              () -> {
                Throwable failure =
                    catchThrowable(
                        () -> {
                          while (looking.get()) {
                            check(group.communicator(0).report());
                          }
                        });
                if (failure != null) {
                  wrong.add(failure);
                }
              });
      group.run(
          communicator -> {
            Tensor tensor = ints(3);
            for (int i = 0; i < 5_000; i++) {
              if (i % 2 == 0) {
                communicator.barrier();
              } else {
                communicator.broadcast(tensor, 1);
              }
            }
          });
      looking.set(false);
      reader.join();
      assertThat(wrong).isEmpty();
      assertThat(group.communicator(0).report().ranks())
          .allMatch(rank -> rank.recent().size() == 64);
    }
  }

  private static void check(Report report) {
    for (Report.Rank rank : report.ranks()) {
      int newer = Integer.MAX_VALUE;
      for (Report.Call call : rank.recent()) {
        String text = call.sequence() % 2 == 1 ? "barrier" : "broadcast(3 x i32, root 1)";
        assertThat(call.text()).isEqualTo(text);
        assertThat(call.sequence()).isLessThan(newer);
        newer = call.sequence();
      }
    }
  }
}
