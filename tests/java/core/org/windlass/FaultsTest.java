// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.ResourceException;
import org.windlass.testing.Launch;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Processes;
import org.windlass.testing.Ranks;

/**
 * Faults that end nothing: a rank that is slow, and memory that is not there. Methods without
 * annotation are what processes run.
 */
@Timeout(180)
class FaultsTest {
  private static final int TIMES = Boolean.getBoolean("windlass.long") ? 50 : 10;
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final int COUNT = 20_000;
  private static final int INBOX = 100;

  @TempDir Path folder;

  /** One of them stands still at any moment of what they do together, and goes on. */
  @Test
  void aSlowRankCostsTimeAlone() throws Exception {
    long seed = new Random().nextLong();
    System.out.println("aSlowRankCostsTimeAlone seed " + seed);
    Random random = new Random(seed);
    Path end = folder.resolve("end");
    try (Processes processes =
        new Processes(FaultsTest.class, 3, folder).with("TEST_END", end.toString())) {
      List<Processes.Rank> ranks = processes.start("works");
      for (Processes.Rank rank : ranks) {
        rank.await("works");
      }
      for (int i = 0; i < TIMES; i++) {
        Processes.Rank slow = ranks.get(random.nextInt(3));
        Thread.sleep(random.nextInt(10));
        slow.signal("STOP");
        Thread.sleep(random.nextInt(30));
        slow.signal("CONT");
      }
      Files.createFile(end);
      for (Processes.Rank rank : ranks) {
        rank.ended();
      }
    }
  }

  static void works() {
    Path end = Path.of(System.getenv("TEST_END"));
    try (Communicator comm =
            Communicator.fromEnvironment(CommunicatorOptions.defaults().withDeadline(SOON), SOON);
        Window window = comm.window(8 * INBOX)) {
      Random random = new Random(1);
      Work work = new Work(comm, window.tensor(DType.F64, INBOX));
      System.out.println("works");
      try (Tensor over = Tensor.allocate(DType.I64)) {
        for (long round = 1; over.getLong() == 0; round++) {
          work.step(random.nextInt(4), round);
          comm.broadcast(over.fill(Files.exists(end) ? 1 : 0), 0);
        }
      }
      comm.barrier(); // none closes what another is still in
    }
  }

  /** What a rank does with others, and where they put what they send it. */
  private record Work(Communicator comm, DistributedTensor inbox) {
    /** What {@code rank} has of a round. */
    private static double value(int rank, long round) {
      return 10 * (round % 1000) + rank;
    }

    void step(int kind, long round) {
      try (Tensor plain =
          Tensor.allocate(DType.F64, COUNT).fill(value(comm.rank(), round))) {
        step(kind, round, plain);
      }
    }

    private void step(int kind, long round, Tensor plain) {
      int own = comm.rank();
      int n = comm.size();
      double sum = n * value(0, round) + n * (n - 1) / 2.0;
      switch (kind) {
        case 0 -> {
          comm.allReduce(plain, ReduceOp.SUM);
          requireAll(plain, sum);
        }
        case 1 -> {
          try (Window other = comm.window(8 * COUNT)) {
            Tensor all = other.tensor(DType.F64, COUNT).copyFrom(plain);
            comm.allReduce(all, ReduceOp.SUM);
            requireAll(all, sum);
          }
        }
        case 2 -> {
          try (Communicator part = comm.split(own % 2, own)) {
            part.broadcast(plain, 0);
            requireAll(plain, value(own % 2, round));
          }
        }
        default -> {
          comm.barrier();
          inbox.window().put(plain.narrow(0, 0, INBOX), (own + 1) % n, inbox);
          comm.barrier();
          requireAll(inbox, value((own + n - 1) % n, round));
        }
      }
    }
  }

  private static void requireAll(Tensor tensor, double expected) {
    double[] found = new double[(int) tensor.numel()];
    tensor.copyTo(found);
    for (double each : found) {
      if (each != expected) {
        throw new AssertionError(tensor + " holds " + each + ", not " + expected);
      }
    }
  }

  /** What one asks for that no machine has is refused on all, between any two things they do. */
  @OnRanks({2, 4})
  void tooLittleMemoryCostsTheCallAlone(Ranks ranks) {
    long seed = new Random().nextLong();
    System.out.println("tooLittleMemoryCostsTheCallAlone seed " + seed);
    // Whether threads may map what they can address is the system's to say, as it is set.
    boolean isWhole = ranks.launch() == Launch.THREADS;
    String why = isWhole ? "more than a process can address" : "are free, says";
    ranks.run(
        comm -> {
          Random random = new Random(seed);
          for (int i = 0; i < TIMES; i++) {
            try (Window window = comm.window(8 * INBOX)) {
              Work work = new Work(comm, window.tensor(DType.F64, INBOX));
              for (int more = random.nextInt(4); more > 0; more--) {
                work.step(random.nextInt(4), i);
              }
              long bytes = 1L << (isWhole ? 50 : 43); // of processes, which all ranks can address
              assertThatThrownBy(() -> comm.window(bytes))
                  .isInstanceOf(ResourceException.class)
                  .hasMessageContaining(why);
              assertThat(comm.failure()).isEmpty();
              work.step(0, i);
            }
          }
        });
  }
}
