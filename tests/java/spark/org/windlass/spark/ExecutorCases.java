// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;

/** What holds of barrier stages whose tasks run in two executors, each a JVM with two slots. */
@Timeout(300)
@EnabledForJreRange(max = JRE.JAVA_22, disabledReason = Sparks.NOT_HERE)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class ExecutorCases {
  private static final int TASKS = 4;
  private static final int KILLS = Boolean.getBoolean("windlass.long") ? 5 : 1;

  private JavaSparkContext spark;

  @TempDir static Path folder;

  /** Whether each of them is a host of its own. */
  abstract boolean isEachAHost();

  /** Has what this gets differ from executor to executor, if it should. */
  abstract void tell(SparkConf conf) throws IOException;

  @BeforeAll
  void start() throws IOException {
    SparkConf conf = Sparks.conf("local-cluster[2,2,1024]");
    tell(conf);
    spark = new JavaSparkContext(conf);
  }

  @AfterAll
  void stop() {
    if (spark != null) {
      spark.stop();
    }
  }

  private JavaRDD<Integer> rows() {
    return spark.parallelize(List.of(0, 1, 2, 3), TASKS);
  }

  /** Of each rank, in rank order, as each of them sees it. */
  private static List<Integer> processes(Communicator comm) {
    return comm.report().ranks().stream()
        .map(rank -> rank.process().orElseThrow().pid())
        .toList();
  }

  /** UCX's library is opened where ranks live on several hosts. */
  private static boolean reachesOtherHosts() throws IOException {
    return Files.readString(Path.of("/proc/self/maps")).contains("libwindlass-ucx.so");
  }

  @Test
  void tasksOfAnExecutorAreRanksOfOneProcess() {
    boolean isEachAHost = isEachAHost();
    List<List<Integer>> seen =
        BarrierStage.call(
            rows(),
            rows -> {
              Communicator comm = SparkCommunicator.of(BarrierTaskContext.get());
              Sparks.requireSum(comm);
              requireWhatNeighboursPut(comm);
              assertThat(reachesOtherHosts()).isEqualTo(isEachAHost);
              List<Integer> processes = new ArrayList<>(processes(comm));
              processes.add((int) ProcessHandle.current().pid());
              return processes;
            });
    List<Integer> processes = seen.get(0).subList(0, TASKS);
    assertThat(processes.stream().distinct()).hasSize(2);
    for (int rank = 0; rank < TASKS; rank++) {
      assertThat(seen.get(rank).subList(0, TASKS)).isEqualTo(processes);
      assertThat(seen.get(rank).get(TASKS)).isEqualTo(processes.get(rank));
    }
  }

  /** In a window, of which one neighbour may live in this executor and one in the other. */
  private static void requireWhatNeighboursPut(Communicator comm) {
    try (Window window = comm.window(1 << 12)) {
      DistributedTensor got = window.tensor(DType.I64, comm.size());
      try (Tensor own = Tensor.allocate(DType.I64, 1)) {
        own.copyFrom(new long[] {100 + comm.rank()});
        for (int peer = 0; peer < comm.size(); peer++) {
          window.put(own, peer, got.narrow(0, comm.rank(), 1));
        }
        comm.barrier();
      }
      long[] all = new long[comm.size()];
      got.copyTo(all);
      for (int peer = 0; peer < comm.size(); peer++) {
        if (all[peer] != 100 + peer) {
          throw new AssertionError("rank " + peer + " put " + all[peer]);
        }
      }
    }
  }

  /** In the first attempt the executor of the last rank dies while the others wait for it. */
  @Test
  void aKilledExecutorIsNamedAndTheStageStartsAgain() throws Exception {
    for (int kill = 0; kill < KILLS; kill++) {
      String notes = Files.createDirectory(folder.resolve("kill-" + kill)).toString();
      List<Integer> attempts = BarrierStage.call(rows(), rows -> killed(notes));
      assertThat(attempts.get(0)).isPositive();
      assertThat(attempts.stream().distinct()).hasSize(1);
      assertSurvivorsWereTold(Path.of(notes));
    }
  }

  private static int killed(String notes) throws Exception {
    BarrierTaskContext task = BarrierTaskContext.get();
    Communicator comm = SparkCommunicator.of(task);
    int last = TASKS - 1;
    if (task.stageAttemptNumber() > 0) {
      Sparks.requireSum(comm);
      return task.stageAttemptNumber();
    }
    int dying = processes(comm).get(last);
    comm.barrier();
    if (comm.rank() == last) {
      Thread.sleep(500); // the others are inside by then
      new ProcessBuilder("kill", "-9", "" + dying).start().waitFor();
      TimeUnit.MINUTES.sleep(1);
    }
    try {
      Sparks.requireSum(comm);
    } catch (WindlassException e) {
      if (processes(comm).get(comm.rank()) != dying) {
        Files.writeString(
            Path.of(notes, "survivor-" + comm.rank()),
            e.getClass().getName() + "\n" + e.faultyRanks());
      }
      throw e;
    }
    return -1;
  }

  private static void assertSurvivorsWereTold(Path notes) throws Exception {
    try (Stream<Path> files = Files.list(notes)) {
      List<Path> survivors =
          files.filter(file -> file.getFileName().toString().startsWith("survivor")).toList();
      assertThat(survivors).isNotEmpty();
      for (Path survivor : survivors) {
        List<String> said = Files.readAllLines(survivor);
        assertThat(said.get(0)).isEqualTo(PeerLostException.class.getName());
        assertThat(said.get(1)).contains("" + (TASKS - 1));
      }
    }
  }
}
