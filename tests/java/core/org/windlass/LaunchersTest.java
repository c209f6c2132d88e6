// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.Processes;

/** Ranks that have a launcher's variables and no other start where they live on one host. */
@Timeout(120)
class LaunchersTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(50);

  @TempDir private Path folder;
  @TempDir private Path tokens;

  @BeforeEach
  void closeFolder() throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
  }

  /** What a rank runs: two communicators, one after the other, whose ranks add up their own. */
  static void sums() {
    for (int i = 0; i < 2; i++) {
      try (Communicator comm = Communicator.fromEnvironment(CommunicatorOptions.defaults(), LONG);
          Window window = comm.window(64)) {
        Tensor sum = window.tensor(DType.I32, 1);
        sum.asByteBuffer().asIntBuffer().put(comm.rank() + 1);
        comm.allReduce(sum, sum, ReduceOp.SUM);
        System.out.println(sum.asByteBuffer().asIntBuffer().get());
      }
    }
  }

  /** Variables written as a shell does, and where the ranks may leave a file. */
  private Map<String, String> variables(String text) {
    Map<String, String> variables = new HashMap<>();
    for (String each : text.split(" ")) {
      variables.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
    }
    variables.put("XDG_RUNTIME_DIR", folder.toString());
    return variables;
  }

  @Test
  void processesStartUnderEachLauncher() throws Exception {
    Map<String, List<String>> launchers = new LinkedHashMap<>();
    launchers.put(
        "mpirun",
        List.of(
            "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0 PMIX_NAMESPACE=7",
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1 PMIX_NAMESPACE=7"));
    String torchrun = " WORLD_SIZE=2 MASTER_ADDR=elsewhere.invalid MASTER_PORT=29500";
    launchers.put("torchrun", List.of("RANK=0" + torchrun, "RANK=1" + torchrun));
    String slurm = " SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0";
    launchers.put("srun", List.of("SLURM_PROCID=0" + slurm, "SLURM_PROCID=1" + slurm));
    try (Processes processes = new Processes(LaunchersTest.class, 2, tokens)) {
      List<Processes.Rank> ranks = new ArrayList<>();
      for (List<String> job : launchers.values()) {
        for (int rank = 0; rank < job.size(); rank++) {
          ranks.add(processes.start(rank, "sums", variables(job.get(rank))));
        }
      }
      for (Processes.Rank rank : ranks) {
        assertThat(rank.ended()).as("%s", launchers).endsWith("3\n3\n");
      }
    }
    assertThat(folder).isEmptyDirectory();
  }

  /** Open MPI's own, with the variables that it sets by itself. */
  @Test
  void processesStartUnderMpirun() throws Exception {
    String mpirun = "/usr/bin/mpirun.openmpi";
    assumeTrue(
        Files.isExecutable(Path.of(mpirun)),
        "no "
            + mpirun
            + ": apt-get install openmpi-bin, as scripts/bench --peers does, and this runs under it");
    String options = " --allow-run-as-root --oversubscribe --bind-to none --stdin all -n 2";
    List<String> ranks = List.of((mpirun + options).split(" "));
    Map<String, String> where = Map.of("XDG_RUNTIME_DIR", folder.toString());
    try (Processes processes = new Processes(LaunchersTest.class, 2, tokens)) {
      assertThat(processes.launch(ranks, "sums", where).ended()).isEqualTo("3\n".repeat(4));
    }
    assertThat(folder.toFile().list((any, name) -> name.startsWith("windlass-"))).isEmpty();
  }

  private Communicator join(String text, Duration deadline) {
    return new EnvironmentStart(variables(text), 1, CommunicatorOptions.defaults(), deadline).join();
  }

  /** Ranks as threads, none of which waits for the others between two starts. */
  private void startAgainAndAgain(String job) throws Exception {
    int ranks = 3;
    ExecutorService threads = Executors.newFixedThreadPool(ranks);
    List<Communicator> made = Collections.synchronizedList(new ArrayList<>());
    try {
      List<CompletableFuture<Void>> all = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        String text = "WINDLASS_WORLD_SIZE=3 WINDLASS_RANK=" + rank + " " + job;
        all.add(
            CompletableFuture.runAsync(
                () -> {
                  for (int i = 0; i < 10; i++) {
                    made.add(join(text, Duration.ofSeconds(10)));
                  }
                },
                threads));
      }
      for (CompletableFuture<Void> each : all) {
        each.get();
      }
    } finally {
      threads.shutdownNow();
      made.forEach(Communicator::close);
    }
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void oneJobStartsAgainAndAgain() throws Exception {
    startAgainAndAgain("WINDLASS_JOB=again");
  }

  @Test
  void oneJobStartsAgainAndAgainAtOneAddress() throws Exception {
    startAgainAndAgain(
        "WINDLASS_RENDEZVOUS=" + Processes.loopback() + " WINDLASS_TOKEN=" + "ab".repeat(32));
  }

  @Test
  void aStartThatFailsSaysWhoDidNotComeAndLeavesNothing() throws Exception {
    String size = " OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=7";
    assertThatThrownBy(() -> join("OMPI_COMM_WORLD_RANK=1" + size, SHORT))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("rank 0")
        .hasMessageContaining(folder.toString())
        .hasMessageContaining("WINDLASS_TOKEN_FILE");
    assertThatThrownBy(() -> join("OMPI_COMM_WORLD_RANK=0" + size, Duration.ofMillis(300)))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("rank 1");
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void aStoreWhoseArtifactIsNotThereIsNamed() {
    String rank = "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_JOB=j WINDLASS_RENDEZVOUS=";
    assertThatThrownBy(() -> join(rank + "etcd://127.0.0.1:2379/windlass", LONG))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("etcd://127.0.0.1:2379/windlass")
        .hasMessageContaining("org.windlass:windlass-etcd");
  }

  @Test
  void anAddressATokenOrAJobThatLacksIsNamed() {
    String rank = "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2";
    Map<String, String> lacking = new LinkedHashMap<>();
    lacking.put(rank, "set WINDLASS_JOB");
    lacking.put(rank + " WINDLASS_RENDEZVOUS=127.0.0.1:1", "set WINDLASS_TOKEN_FILE");
    lacking.put(rank + " WINDLASS_TOKEN=" + "ab".repeat(32), "set WINDLASS_RENDEZVOUS");
    lacking.forEach(
        (text, cure) ->
            assertThatThrownBy(() -> join(text, SHORT))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining(cure));
    assertThat(folder).isEmptyDirectory();
  }
}
