// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.bench.side.LibrarySide;
import org.windlass.bench.workload.BarrierWorkload;
import org.windlass.bench.workload.Workload;
import org.windlass.error.VerificationFailedException;
import org.windlass.testing.Ports;

@Timeout(60)
class SamplerTest {
  private static final int RANKS = 2;

  /** Copies its input by itself, unless told to stop at some call. */
  private static final class Copying implements Workload {
    final long stopsAtCall;
    final RuntimeException failure;
    final AtomicIntegerArray calls = new AtomicIntegerArray(RANKS);
    final AtomicIntegerArray checks = new AtomicIntegerArray(RANKS);
    final AtomicIntegerArray closed = new AtomicIntegerArray(RANKS);
    final AtomicLongArray in = new AtomicLongArray(RANKS);
    final AtomicLongArray out = new AtomicLongArray(RANKS);

    Copying(long stopsAtCall, RuntimeException failure) {
      this.stopsAtCall = stopsAtCall;
      this.failure = failure;
    }

    @Override
    public RankWork open(Communicator comm) {
      int rank = comm.rank();
      return new RankWork() {
        @Override
        public void rewrite(long iteration) {
          in.set(rank, iteration + 1);
        }

        @Override
        public void call() {
          if (calls.incrementAndGet(rank) < stopsAtCall || rank == 0) {
            out.set(rank, in.get(rank));
          } else if (failure != null) {
            throw failure;
          }
        }

        @Override
        public void verify(long iteration) {
          checks.incrementAndGet(rank);
          if (out.get(rank) != iteration + 1) {
            throw new VerificationFailedException("rank " + rank + " holds " + out.get(rank));
          }
        }

        @Override
        public void close() {
          closed.incrementAndGet(rank);
        }
      };
    }

    @Override
    public int ranks() {
      return RANKS;
    }

    @Override
    public long bytes() {
      return 8;
    }

    @Override
    public long receivedBytes() {
      return 0;
    }

    @Override
    public OptionalDouble floorMicros(int iterations) {
      return OptionalDouble.of(iterations);
    }
  }

  private static Sampler.Measurement run(Copying workload) {
    try (var group = LocalGroup.of(RANKS)) {
      return new Sampler(group, workload, 2, 0.03, 3).run();
    }
  }

  @Test
  void checksOutputsBeforeAndAfterTheTiming() {
    Copying workload = new Copying(Long.MAX_VALUE, null);
    Sampler.Measurement measured = run(workload);
    int iterations = measured.batches().stream().mapToInt(Stamps::iterations).sum();
    assertThat(measured.samples()).hasSize(iterations).isSorted();
    assertThat(measured.floorMicros()).isPresent();
    assertThat(measured.streamNanos()).isPositive();
    for (int rank = 0; rank < RANKS; rank++) {
      assertThat(workload.checks.get(rank)).isEqualTo(5);
      assertThat(workload.calls.get(rank)).isGreaterThan(iterations);
      assertThat(workload.closed.get(rank)).isEqualTo(1);
    }
  }

  /** Something compiles all the time in a JVM that runs other tests' code too. */
  @Test
  void aWarmUpEnds() {
    Copying workload = new Copying(Long.MAX_VALUE, null);
    int settled = 0;
    try (var group = LocalGroup.of(RANKS)) {
      for (int i = 0; i < 20 && settled == 0; i++) {
        int before = workload.closed.get(0);
        new Sampler(group, workload, 2, 0.03, 1).warmUp();
        int measured = workload.closed.get(0) - before;
        assertThat(measured).isBetween(1, 4);
        settled = measured == 1 ? i + 1 : 0;
      }
    }
    assertThat(settled).as("warm-ups until one found nothing left to compile").isPositive();
  }

  @Test
  void aCallThatStopsMovingBytesIsFound() {
    for (long stopsAtCall : new long[] {1, 2, 5, 10}) {
      Copying workload = new Copying(stopsAtCall, null);
      assertThatThrownBy(() -> run(workload))
          .isInstanceOf(VerificationFailedException.class)
          .hasMessageContaining("rank 1");
      assertThat(workload.closed.get(0)).isEqualTo(1);
    }
  }

  @Test
  void aRankThatFailsHoldsNobodyBack() {
    for (long stopsAtCall : new long[] {1, 2, 5, 10}) {
      Copying workload = new Copying(stopsAtCall, new IllegalStateException("broken"));
      assertThatThrownBy(() -> run(workload))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("broken");
      assertThat(workload.closed.get(1)).isEqualTo(1);
    }
  }

  /** Two processes of two ranks each, here threads that attach to what they share on their own. */
  @Test
  void samplersOfSeveralProcessesAgree() throws Exception {
    int port = Ports.free();
    List<FutureTask<Sampler.Measurement>> processes = new ArrayList<>();
    for (int process = 0; process < 2; process++) {
      Map<String, String> variables =
          Map.of(
              "WINDLASS_RANK", "" + process,
              "WINDLASS_WORLD_SIZE", "2",
              "WINDLASS_RENDEZVOUS", "127.0.0.1:" + port,
              "WINDLASS_TOKEN", "ab".repeat(32));
      processes.add(new FutureTask<>(() -> run(variables)));
      new Thread(processes.get(process)).start();
    }
    Sampler.Measurement measured = processes.get(0).get(50, TimeUnit.SECONDS);
    processes.get(1).get(50, TimeUnit.SECONDS);
    int iterations = measured.batches().stream().mapToInt(Stamps::iterations).sum();
    assertThat(measured.samples()).hasSize(iterations).isSorted();
    for (Stamps batch : measured.batches()) {
      for (int i = 0; i < batch.iterations(); i++) {
        long lastReady = Long.MIN_VALUE;
        long firstLeave = Long.MAX_VALUE;
        for (int rank = 0; rank < 4; rank++) {
          lastReady = Math.max(lastReady, batch.ready(rank, i));
          firstLeave = Math.min(firstLeave, batch.leave(rank, i));
        }
        assertThat(firstLeave).isGreaterThan(lastReady); // none leaves before all were ready
      }
    }
  }

  private static Sampler.Measurement run(Map<String, String> variables) {
    Duration soon = Duration.ofSeconds(30);
    var options = CommunicatorOptions.defaults().withDeadline(soon);
    Workload workload = new BarrierWorkload(new LibrarySide(Algorithm.AUTO, false), 4);
    try (var group = LocalGroup.fromEnvironment(variables, 2, options, soon)) {
      Sampler.Measurement measured = new Sampler(group, workload, 2, 0.1, 2).run();
      group.run(Communicator::barrier);
      return measured;
    }
  }
}
