// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.internal.NativeLoader;
import org.windlass.launch.LaunchEnvironment;
import org.windlass.launch.LaunchStore;
import org.windlass.testing.Processes;
import org.windlass.testing.Ucx;

/** Ranks that are no JVM, among ranks that are, here threads of the test's JVM. */
@Timeout(180)
class PythonRanksTest {
  private static final Duration SOON = Duration.ofSeconds(40);

  @TempDir private Path folder;
  private Processes processes;

  @AfterEach
  void endProcesses() {
    processes.close();
  }

  @BeforeEach
  void closeFolder() throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
    Path tokens = Files.createDirectory(folder.resolve("tokens"));
    processes = new Processes(PythonRanksTest.class, 1, tokens);
  }

  /** What tells {@code rank} of {@code size} where the others are: at an address, or by a file. */
  private Map<String, String> variables(int rank, int size, boolean byFile) {
    Map<String, String> variables = new HashMap<>();
    variables.put("WINDLASS_RANK", "" + rank);
    variables.put("WINDLASS_WORLD_SIZE", "" + size);
    variables.put("XDG_RUNTIME_DIR", folder.toString());
    if (byFile) {
      variables.put("WINDLASS_JOB", "python");
    } else {
      variables.put("WINDLASS_RENDEZVOUS", processes.address());
      variables.putAll(processes.variables());
    }
    return variables;
  }

  private Communicator join(int rank, int size, boolean byFile) {
    return join(variables(rank, size, byFile));
  }

  private static Communicator join(Map<String, String> variables) {
    return new EnvironmentStart(variables, 1, CommunicatorOptions.defaults(), SOON).join();
  }

  private Processes.Rank pythonRank(int rank, int size, String function) throws IOException {
    return processes.startPython(rank, function, variables(rank, size, false));
  }

  /**
   * {@code kinds} has a letter for each rank: a Python rank, or a JVM. In the long form also what
   * is a part of a larger case, and Python ranks alone, as the page's are.
   */
  @ParameterizedTest
  @CsvSource({"JG, false", "GJ, false", "GJ, true", "JG, true", "GJGJ, false", "GG, true"})
  void pythonRanksTakePartInCollectives(String kinds, boolean byFile) throws Exception {
    assumeTrue(
        !List.of("GJ false", "GG true").contains(kinds + " " + byFile)
            || Boolean.getBoolean("windlass.long"),
        "-Dwindlass.long=true runs it");
    takePartInCollectives(kinds, rank -> variables(rank, kinds.length(), byFile));
  }

  /**
   * {@code hosts} has a letter for each rank as well: the host that it lives on. Two ranks, whose
   * kinds and hosts are among those of four: in the long form.
   */
  @ParameterizedTest
  @CsvSource({"JG, ab", "GJ, ab", "GG, ab", "GJGJ, aabb", "JGGJ, abab"})
  void pythonRanksTakePartInCollectivesOfSeveralHosts(String kinds, String hosts) throws Exception {
    Ucx.require();
    assumeTrue(
        kinds.length() > 2 || Boolean.getBoolean("windlass.long"), "-Dwindlass.long=true runs it");
    takePartInCollectives(kinds, rank -> onHost(hosts, rank));
  }

  private Map<String, String> onHost(String hosts, int rank) {
    Map<String, String> variables = variables(rank, hosts.length(), false);
    variables.put("WINDLASS_HOST", hosts.substring(rank, rank + 1));
    return variables;
  }

  private void takePartInCollectives(String kinds, IntFunction<Map<String, String>> variables)
      throws Exception {
    int size = kinds.length();
    List<Processes.Rank> pythonRanks = new ArrayList<>();
    List<CompletableFuture<Void>> others = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      int own = rank;
      if (kinds.charAt(rank) == 'G') {
        pythonRanks.add(processes.startPython(rank, "collectives", variables.apply(rank)));
      } else {
        others.add(
            CompletableFuture.runAsync(
                () -> {
                  try (Communicator comm = join(variables.apply(own))) {
                    collectives(comm);
                  }
                },
                task -> new Thread(task).start()));
      }
    }
    for (CompletableFuture<Void> each : others) {
      each.get(90, TimeUnit.SECONDS);
    }
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.ended()).endsWith("done\n");
    }
    assertThat(folder.toFile().list((any, name) -> name.startsWith("windlass-"))).isEmpty();
  }

  /** As the Python function of this name, which checks what comes. */
  private static void collectives(Communicator comm) {
    Collectives calls = comm.withDeadline(SOON);
    List<DType> dtypes = List.of(DType.U8, DType.I64, DType.F16, DType.F32, DType.F64);
    for (int round = 0; round < 3; round++) {
      for (DType dtype : dtypes) {
        for (int count : new int[] {0, 1, 7, 5000}) {
          sums(comm, calls, round, dtype, count);
        }
      }
      calls.barrier();
    }
  }

  private static void sums(
      Communicator comm, Collectives calls, int round, DType dtype, int count) {
    int size = comm.size();
    try (Tensor own = Tensor.allocate(dtype, count);
        Tensor total = Tensor.allocate(dtype, count)) {
      fill(own, 13, comm.rank() + round);
      calls.allReduce(own, total, ReduceOp.SUM);
      for (int i = 0; i < count; i++) {
        double sum = size * (i % 13 + round) + size * (size - 1) / 2;
        assertThat(total.getDouble(i)).isEqualTo(sum);
      }
      calls.allReduce(own, ReduceOp.MAX);
      requireFilled(own, 13, size - 1 + round);
      fill(own, 13, 4 * comm.rank());
      if (dtype.isFloating()) {
        calls.allReduce(own, total, 0.5 * (comm.rank() + 1));
      } else {
        for (ReduceOp op : List.of(ReduceOp.AND, ReduceOp.OR, ReduceOp.XOR)) {
          calls.allReduce(own, total, op);
        }
      }
      for (int i = 0; i < count; i++) {
        double sum = 0;
        int xor = 0;
        for (int rank = 0; rank < size; rank++) {
          sum += 0.5 * (rank + 1) * (i % 13 + 4 * rank);
          xor ^= i % 13 + 4 * rank;
        }
        assertThat(total.getDouble(i)).isEqualTo(dtype.isFloating() ? sum : xor);
      }
      messages(comm, calls, round, own);
      for (int root = 0; root < size; root++) {
        fill(own, 7, comm.rank() == root ? root : 0);
        calls.broadcast(own, root);
        requireFilled(own, 7, root);
      }
    }
  }

  /** Each rank sends around the ring, and then rank 0 to all. */
  private static void messages(Communicator comm, Collectives calls, int round, Tensor own) {
    int size = comm.size();
    int before = (comm.rank() + size - 1) % size;
    try (Tensor got = Tensor.allocate(own.dtype(), own.numel() + 1)) {
      assertThat(calls.sendReceive(own, (comm.rank() + 1) % size, got, before, round))
          .isEqualTo(new Received(before, round, own.numel()));
      requireFilled(got.narrow(0, 0, own.numel()), 13, 4 * before);
      for (int rank = 1; comm.rank() == 0 && rank < size; rank++) {
        calls.send(own, rank, 5);
      }
      if (comm.rank() > 0) {
        assertThat(calls.receive(got, PointToPoint.ANY_SOURCE, PointToPoint.ANY_TAG))
            .isEqualTo(new Received(0, 5, own.numel()));
        requireFilled(got.narrow(0, 0, own.numel()), 13, 0);
      }
    }
  }

  private static void fill(Tensor tensor, int modulus, int more) {
    for (int i = 0; i < tensor.numel(); i++) {
      tensor.setDouble(i % modulus + more, i);
    }
  }

  private static void requireFilled(Tensor tensor, int modulus, int more) {
    for (int i = 0; i < tensor.numel(); i++) {
      assertThat(tensor.getDouble(i)).isEqualTo(i % modulus + more);
    }
  }

  @Test
  void pythonRanksDoWhatThePageShows() throws Exception {
    List<Processes.Rank> pythonRanks = List.of(pythonRank(0, 2, "page"), pythonRank(1, 2, "page"));
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.ended()).endsWith("done\n");
    }
  }

  @Test
  void aForkedChildLeavesTheRanksAlone() throws Exception {
    List<Processes.Rank> pythonRanks =
        List.of(pythonRank(0, 2, "forks"), pythonRank(1, 2, "forks"));
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.ended()).endsWith("done\n");
    }
  }

  @Test
  void framesOfAStoreAreSealed() throws Exception {
    assertThat(pythonRank(0, 1, "seals").ended()).endsWith("done\n");
  }

  @Test
  void thePackageIsAnnotatedAndNeedsNoOther() throws Exception {
    assertThat(pythonRank(0, 1, "package").ended()).endsWith("done\n");
  }

  @Test
  void allGathersAtAPythonStoreEndAlikeForAllRanks() throws Exception {
    assertThat(pythonRank(0, 1, "store").ended()).endsWith("done\n");
  }

  /** Each of three parsers reads as many: 100,000 frames in all, ten million in the long form. */
  @Test
  @Timeout(1800)
  void randomFramesChangeNothingForHonestMembers() throws Exception {
    for (int runs = Boolean.getBoolean("windlass.long") ? 100 : 1; runs > 0; runs--) {
      String said = pythonRank(0, 1, "fuzz 34000").ended();
      assertThat(said).as(said).endsWith("done\n");
    }
  }

  @Test
  void aPythonRankLeavesTheStoreOfAnEarlierStart() throws Exception {
    Processes.Rank first = pythonRank(0, 2, "earlier");
    Processes.Rank other = pythonRank(1, 2, "joins");
    assertThat(first.ended()).isEqualTo("Communicator(rank 0 of 2)\n");
    assertThat(other.ended()).isEqualTo("Communicator(rank 1 of 2)\n");
  }

  @Test
  void aStoreWhoseThreadEndsFirstIsClosed() throws Exception {
    assertThat(pythonRank(0, 1, "early_store").ended()).endsWith("done\n");
  }

  @Test
  void integersThatDoNotFitAreRefused() throws Exception {
    List<Processes.Rank> pythonRanks =
        List.of(pythonRank(0, 2, "integers"), pythonRank(1, 2, "integers"));
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.ended()).endsWith("done\n");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"handlers", "closes", "interrupts"})
  void threadsAndSignalHandlersMayEndIt(String how) throws Exception {
    assertThat(pythonRank(0, 1, how).ended()).endsWith("done\n");
  }

  @ParameterizedTest
  @CsvSource({
    "key, rank 1 ended with KeyError: 'mine'",
    "windlass, rank 1 ended with InvalidArgumentException: all_reduce: op is 'median'",
    "interrupt, rank 1 ended with KeyboardInterrupt",
    "status, rank 1 ended with SystemExit: 3",
    "textless, rank 1 ended with Textless",
    "quit, rank 1 closed the communicator"
  })
  void peersAreToldWhatEndedAPythonRank(String how, String told) throws Exception {
    Processes.Rank pythonRank = pythonRank(1, 2, "leaves " + how);
    try (Communicator comm = join(0, 2, false)) {
      assertThatThrownBy(() -> comm.withDeadline(SOON).barrier())
          .isInstanceOfSatisfying(
              AbortedException.class, e -> assertThat(e.faultyRanks()).containsExactly(1))
          .hasMessageContaining(told);
    }
    assertThat(pythonRank.ended()).endsWith("done\n");
  }

  @Test
  void aValueThatIsNoMemoryIsRefused() throws Exception {
    assertThat(pythonRank(0, 1, "scalars").ended())
        .contains("InvalidArgumentException all_reduce: array: a float32 is a value and no memory")
        .contains("broadcast: array: a float32 is a value and no memory")
        .contains("sum 1.5\n");
  }

  @Test
  void whatIsWrongIsRefusedBeforeItIsSent() throws Exception {
    Processes.Rank pythonRank = pythonRank(1, 2, "refusals");
    try (Communicator comm = join(0, 2, false)) {
      comm.withDeadline(SOON).barrier();
    }
    assertThat(pythonRank.ended()).endsWith("done\n");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void aPythonRankThatIsKilledIsNamed(int rank) throws Exception {
    kill(rank, each -> variables(each, 2, false));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void aPythonRankThatIsKilledOnAnotherHostIsNamed(int rank) throws Exception {
    Ucx.require();
    kill(rank, each -> onHost("ab", each));
  }

  private void kill(int rank, IntFunction<Map<String, String>> variables) throws Exception {
    Processes.Rank pythonRank = processes.startPython(rank, "barriers", variables.apply(rank));
    try (Communicator comm = join(variables.apply(1 - rank))) {
      comm.withDeadline(SOON).barrier();
      pythonRank.kill();
      assertThatThrownBy(
              () -> {
                while (true) {
                  comm.withDeadline(SOON).barrier();
                }
              })
          .isInstanceOfSatisfying(
              PeerLostException.class, e -> assertThat(e.faultyRanks()).containsExactly(rank));
    }
  }

  /** What a rank runs that is killed. */
  static void stays() throws InterruptedException {
    try (Communicator comm = Communicator.fromEnvironment(CommunicatorOptions.defaults(), SOON)) {
      System.out.println(comm + " is there");
      Thread.sleep(SOON.toMillis());
    }
  }

  @Test
  void aPythonRankIsToldWhoseProcessWasKilled() throws Exception {
    Processes.Rank pythonRank = pythonRank(0, 2, "waits");
    Processes.Rank peer = processes.start(1, "stays", variables(1, 2, false));
    peer.await("is there");
    pythonRank.await("is there");
    peer.kill();
    assertThat(pythonRank.ended()).contains("PeerLostException [1]: ");
  }

  @Test
  void aPythonRankIsToldOfAnAbortWithItsReason() throws Exception {
    Processes.Rank pythonRank = pythonRank(1, 2, "waits");
    try (Communicator comm = join(0, 2, false)) {
      pythonRank.await("is there");
      comm.abort("the test says so");
      assertThat(pythonRank.ended())
          .contains("AbortedException [0]: ")
          .contains("the test says so");
    }
  }

  @Test
  void ranksThatDisagreeAreToldSo() throws Exception {
    Processes.Rank pythonRank = pythonRank(1, 2, "another");
    try (Communicator comm = join(0, 2, false)) {
      assertThatThrownBy(() -> comm.withDeadline(SOON).barrier())
          .isInstanceOf(MismatchException.class);
      assertThat(pythonRank.ended()).contains("MismatchException ").contains("barrier");
    }
  }

  @Test
  void aPythonRankWaitsNoLongerThanItsDeadline() throws Exception {
    processes.with("TEST_DEADLINE", "1.5");
    assertThat(pythonRank(0, 2, "joins").ended())
        .contains("DeadlineExceededException [1]: ")
        .contains(processes.address());
    assertThat(pythonRank(1, 2, "joins").ended()).contains("DeadlineExceededException [0]: ");
    Map<String, String> byFile = variables(1, 2, true);
    assertThat(processes.startPython(1, "joins", byFile).ended())
        .contains("DeadlineExceededException []: rank 0 has not announced the rendezvous")
        .contains("set XDG_RUNTIME_DIR to one folder of mode 700 on all sides");
  }

  /** In the words of a JVM, and not after the deadline, by which rank 0 has not come. */
  @ParameterizedTest
  @CsvSource({"xx, InvalidArgumentException", "A5, UnsupportedException"})
  void aTargetThatIsNotThereIsRefusedBeforeTheStart(String target, String kind)
      throws Exception {
    assumeFalse(NativeLoader.has(target.toLowerCase(Locale.ROOT)), "it is there");
    Map<String, String> variables = variables(1, 2, false);
    variables.put("WINDLASS_TARGET", target);
    assertThat(processes.startPython(1, "joins", variables).ended())
        .startsWith(kind + " []: ")
        .contains(
            target.equals("xx")
                ? "WINDLASS_TARGET is " + NativeLoader.unknown("xx") + "; name one or unset it"
                : "there is no libwindlass-a5.so in ");
  }

  @Test
  void whatRanksHaveToHaveAlikeIsCompared() throws Exception {
    Processes.Rank pythonRank = pythonRank(1, 3, "joins");
    assertThatThrownBy(() -> join(0, 2, false)).isInstanceOf(MismatchException.class);
    assertThat(pythonRank.ended())
        .contains("MismatchException [0, 1]: rank 0 was started as one of 2 ranks, rank 1 as one"
            + " of 3");
    pythonRank = pythonRank(1, 2, "joins");
    CommunicatorOptions other = CommunicatorOptions.defaults().withBlocks(1);
    EnvironmentStart start = new EnvironmentStart(variables(0, 2, false), 1, other, SOON);
    assertThatThrownBy(start::join)
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("were given blocks=1 and blocks=0; give all ranks the same options");
    assertThat(pythonRank.ended()).contains("MismatchException [0, 1]: ").contains("blocks=1");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void aPythonRankWithAnotherTokenIsTurnedAway(int rank) throws Exception {
    Map<String, String> wrong = variables(rank, 2, false);
    wrong.remove("WINDLASS_TOKEN_FILE");
    wrong.put("WINDLASS_TOKEN", "ab".repeat(32));
    Processes.Rank pythonRank = processes.startPython(rank, "joins", wrong);
    CompletableFuture<Void> other =
        CompletableFuture.runAsync(
            () -> {
              Duration limit = rank == 0 ? SOON : Duration.ofSeconds(5);
              var start =
                  new EnvironmentStart(
                      variables(1 - rank, 2, false),
                      1,
                      CommunicatorOptions.defaults(),
                      limit);
              assertThatThrownBy(start::join)
                  .isInstanceOf(
                      rank == 0 ? ResourceException.class : DeadlineExceededException.class);
            },
            task -> new Thread(task).start());
    if (rank == 1) {
      assertThat(pythonRank.ended())
          .contains("ResourceException ")
          .contains("the store holds another token than this member");
    }
    other.get(60, TimeUnit.SECONDS);
  }

  /** At the store of {@code windlass run}. */
  @Test
  void pythonRanksStartAtTheStoreOfTheirLauncher() throws Exception {
    try (LaunchStore store = LaunchStore.open(processes.variables())) {
      List<Processes.Rank> pythonRanks = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        Map<String, String> variables = variables(rank, 2, false);
        variables.putAll(store.variables());
        pythonRanks.add(processes.startPython(rank, "joins", variables));
      }
      for (int rank = 0; rank < 2; rank++) {
        assertThat(pythonRanks.get(rank).ended())
            .isEqualTo("Communicator(rank " + rank + " of 2)\n");
      }
    }
  }

  @Test
  void launchVariablesAreReadAsByJvms() throws Exception {
    String token = " WINDLASS_TOKEN=" + "ab".repeat(32);
    String torchrun = "RANK=1 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=";
    List<String> cases =
        List.of(
            "",
            "WINDLASS_RANK=1 WINDLASS_WORLD_SIZE=2",
            "WINDLASS_RANK=1 WINDLASS_WORLD_SIZE=2 WINDLASS_JOB=j",
            "WINDLASS_RANK=2 WINDLASS_WORLD_SIZE=2",
            "WINDLASS_RANK=1",
            "WINDLASS_RANK=-1 WINDLASS_WORLD_SIZE=2",
            "WINDLASS_RANK=x WINDLASS_WORLD_SIZE=2",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=4097",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 RANK=0 WORLD_SIZE=2",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 RANK=1 WORLD_SIZE=2",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_RENDEZVOUS=127.0.0.1:77" + token,
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_RENDEZVOUS=127.0.0.1:0",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_RENDEZVOUS=nowhere",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_RENDEZVOUS=h:7"
                + " WINDLASS_LAUNCHER_STORE=h:7",
            "WINDLASS_RANK=0 WINDLASS_WORLD_SIZE=2 WINDLASS_TOKEN_FILE=f" + token,
            torchrun + "29500",
            torchrun + "29500" + token,
            torchrun + "65535" + token,
            torchrun + "29500 TORCHELASTIC_RUN_ID=none",
            torchrun + "29500 TORCHELASTIC_RUN_ID=r7",
            torchrun + "0",
            "RANK=1 WORLD_SIZE=3 MASTER_ADDR=h",
            "WORLD_SIZE=3",
            "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1 PMIX_NAMESPACE=n",
            "PMIX_RANK=1 SLURM_NTASKS=2 SLURM_PROCID=1 PMIX_NAMESPACE=n",
            "PMIX_RANK=1 SLURM_NTASKS=2 SLURM_PROCID=0 PMIX_NAMESPACE=n",
            "PMIX_RANK=1",
            "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0",
            "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=7",
            "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0",
            "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0",
            "SLURM_PROCID=2 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0",
            "SLURM_NTASKS=2 RANK= WORLD_SIZE=");
    Path file = Files.write(folder.resolve("cases"), cases);
    String said = processes.startPython(0, "launches " + file, Map.of()).ended();
    List<String> expected = cases.stream().map(PythonRanksTest::read).toList();
    assertThat(said.lines().toList()).isEqualTo(expected);
    assertThat(expected).contains("refused", "TORCHRUN 1 3 r7 none false");
  }

  private static String read(String words) {
    Map<String, String> variables = new HashMap<>();
    for (String each : words.isEmpty() ? new String[0] : words.split(" ")) {
      variables.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
    }
    try {
      return LaunchEnvironment.of(variables)
          .map(
              found ->
                  found.launcher().name()
                      + " "
                      + found.rank()
                      + " "
                      + found.size()
                      + " "
                      + found.job().orElse("none")
                      + " "
                      + found
                          .rendezvous()
                          .map(at -> at.getHostString() + ":" + at.getPort())
                          .orElse("none")
                      + " "
                      + found.launcherHasStore())
          .orElse("refused");
    } catch (InvalidArgumentException e) {
      return "refused";
    }
  }

  /**
   * One that doesn't mind that a Python rank's store can't show the token is turned away by that.
   */
  @Test
  void whoCantShowTheTokenToAPythonRankStaysOut() throws Exception {
    processes.with("TEST_DEADLINE", "3");
    pythonRank(0, 2, "joins");
    Map<String, String> wrong = variables(1, 2, false);
    wrong.remove("WINDLASS_TOKEN_FILE");
    wrong.put("WINDLASS_TOKEN", "ab".repeat(32));
    assertThat(processes.startPython(1, "forges", wrong).ended())
        .contains("DeadlineExceededException ")
        .contains("no store there");
  }

  /**
   * Of a store that a Python rank has: strangers send what they will, and ranks start all the same.
   */
  @Test
  void strangersDontKeepRanksFromThePythonStore() throws Exception {
    Random random = new Random(7);
    List<Socket> open = new ArrayList<>();
    try {
      Processes.Rank pythonRank = pythonRank(0, 3, "joins");
      Processes.Rank other = pythonRank(1, 3, "joins");
      String[] at = processes.address().split(":");
      for (int i = 0; i < 600; i++) {
        Socket socket = connected(at);
        open.add(socket);
        byte[] garbage = new byte[random.nextInt(64)];
        random.nextBytes(garbage);
        if (i % 3 == 0 && garbage.length >= 4) {
          garbage[0] = garbage[1] = 0; // of a frame that is none too long
        }
        try {
          socket.getOutputStream().write(garbage);
          if (i % 2 == 0) {
            socket.close();
          }
        } catch (IOException e) {
          // It was turned away already.
        }
      }
      try (Communicator comm = join(2, 3, false)) {
        comm.withDeadline(SOON).barrier();
      }
      assertThat(pythonRank.ended()).contains("rank 0 of 3").doesNotContain("Exception");
      assertThat(other.ended()).contains("rank 1 of 3").doesNotContain("Exception");
    } finally {
      for (Socket socket : open) {
        socket.close();
      }
    }
  }

  /** Once somebody listens. */
  private static Socket connected(String[] at) throws Exception {
    for (int i = 0; ; i++) {
      try {
        return new Socket(at[0], Integer.parseInt(at[1]));
      } catch (IOException e) {
        if (i == 600) {
          throw e;
        }
        Thread.sleep(50);
      }
    }
  }

  /** What listens where a Python rank looks for a store is none. */
  @ParameterizedTest
  @CsvSource({
    "garbage, InvalidArgumentException, not a Windlass store",
    "long, InvalidArgumentException, a frame of 2147483647 bytes",
    "short, InvalidArgumentException, a challenge of 3 bytes",
    "silent, DeadlineExceededException, no store there",
    "closes, DeadlineExceededException, no store there"
  })
  void whatIsNoStoreIsNamed(String kind, String error, String text) throws Exception {
    try (ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      Thread answering = new Thread(() -> answer(server, kind));
      answering.setDaemon(true);
      answering.start();
      Map<String, String> variables = variables(1, 2, false);
      variables.put("WINDLASS_RENDEZVOUS", "127.0.0.1:" + server.getLocalPort());
      processes.with("TEST_DEADLINE", "2");
      assertThat(processes.startPython(1, "joins", variables).ended())
          .contains(error)
          .contains(text);
    }
  }

  private static void answer(ServerSocket server, String kind) {
    List<Socket> open = new ArrayList<>();
    try {
      while (true) {
        Socket socket = server.accept();
        open.add(socket);
        DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        switch (kind) {
          case "garbage" -> out.write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes());
          case "long" -> out.writeInt(Integer.MAX_VALUE);
          case "short" -> out.write(new byte[] {0, 0, 0, 3, 2, 0, 0});
          case "closes" -> socket.close();
          default -> { }
        }
      }
    } catch (IOException e) {
      // The test is over.
    }
  }
}
