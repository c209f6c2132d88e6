// SPDX-License-Identifier: Apache-2.0
package org.windlass.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;
import org.windlass.experts.ExpertRouting;
import org.windlass.launch.LaunchEnvironment;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Hosts;
import org.windlass.testing.Processes;
import org.windlass.testing.Ucx;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Communicators of processes that WINDLASS_HOST puts on several hosts, which reach one another over
 * loopback. Methods without {@code @Test} are what the processes run.
 */
@Tag("hosts")
@Timeout(180)
class HostsTest {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.defaults().withDeadline(SOON);

  @TempDir Path folder;

  @BeforeEach
  void requireUcx() {
    Ucx.require();
  }

  private static List<Processes.Rank> start(Processes processes, String hosts, String body)
      throws Exception {
    return processes.startOnHosts(hosts, body);
  }

  private static Processes.Rank start(
      Processes processes, String hosts, int process, String body, Map<String, String> others)
      throws Exception {
    return processes.startOnHost(hosts, process, body, others);
  }

  private Processes processes(String hosts) throws Exception {
    return new Processes(HostsTest.class, hosts.length(), folder);
  }

  /** Groups one after the other in the same processes: on which host each is, and its ranks. */
  @ParameterizedTest
  @ValueSource(strings = {"ab*1 ab*2", "abab*1 aabb*1 abcd*1"})
  void groupsGiveWhatTheyGiveOnOneHost(String groups) throws Exception {
    String hosts = groups.substring(0, groups.indexOf('*'));
    String addresses =
        Stream.generate(Processes::loopback)
            .limit(groups.split(" ").length)
            .collect(Collectors.joining(" "));
    try (Processes processes =
        processes(hosts).with("TEST_GROUPS", groups).with("TEST_ADDRESSES", addresses)) {
      for (Processes.Rank rank : start(processes, hosts, "groups")) {
        assertThat(rank.ended()).contains("all is as it should be");
      }
    }
  }

  static void groups() throws Exception {
    String[] groups = System.getenv("TEST_GROUPS").split(" ");
    String[] addresses = System.getenv("TEST_ADDRESSES").split(" ");
    Map<String, String> variables = new HashMap<>(System.getenv());
    int process = Integer.parseInt(variables.get("WINDLASS_RANK"));
    for (int i = 0; i < groups.length; i++) {
      String[] group = groups[i].split("\\*");
      variables.put("WINDLASS_HOST", "" + group[0].charAt(process));
      variables.put("WINDLASS_RENDEZVOUS", addresses[i]);
      int ranks = Integer.parseInt(group[1]);
      try (LocalGroup all = LocalGroup.fromEnvironment(variables, ranks, OPTIONS, SOON)) {
        all.run(
            comm -> {
              runCollectives(comm);
              runParts(comm);
              refuseExperts(comm);
              if (group[0].equals("abab")) {
                redistribute(comm);
              }
            });
      }
    }
    System.out.println("all is as it should be");
  }

  /** Term {@code i} of a rank: sums of these depend on their order. */
  private static float term(int rank, long i) {
    return (float) Math.scalb(1.0 + (rank * 31L + i * 17) % 1009 / 1009.0, (int) ((rank + i) % 9) * 4);
  }

  /** Of many: an assertion of AssertJ for each takes longer than what is tested. */
  private static void requireEqual(double found, double expected, String what, int i) {
    if (found != expected) {
      throw new AssertionError(what + " " + i + " is " + found + ", not " + expected);
    }
  }

  private static void runCollectives(Communicator comm) {
    int size = comm.size();
    for (int count : new int[] {1, 57, 5_000, 300_000}) {
      Tensor tensor = Tensor.allocate(DType.F32, count);
      float[] own = new float[count];
      for (int i = 0; i < count; i++) {
        own[i] = term(comm.rank(), i);
      }
      tensor.copyFrom(own);
      comm.allReduce(tensor, ReduceOp.SUM);
      float[] sums = new float[count];
      tensor.copyTo(sums);
      for (int i = 0; i < count; i++) {
        float sum = term(0, i);
        for (int rank = 1; rank < size; rank++) {
          sum += term(rank, i);
        }
        requireEqual(sums[i], sum, "sum", i);
      }
      comm.barrier();

      Tensor in = Tensor.allocate(DType.I32, size, count);
      Tensor out = Tensor.allocate(DType.I32, size, count);
      int[] blocks = new int[size * count];
      for (int i = 0; i < blocks.length; i++) {
        blocks[i] = comm.rank() * 1_000_003 + i;
      }
      in.copyFrom(blocks);
      comm.allToAll(in, out);
      out.copyTo(blocks);
      for (int i = 0; i < blocks.length; i++) {
        int from = i / count;
        int at = comm.rank() * count + i % count;
        requireEqual(blocks[i], from * 1_000_003 + at, "element", i);
      }
      int root = count % size;
      Tensor copy = Tensor.allocate(DType.F32, count);
      copy.copyFrom(own);
      comm.broadcast(copy, root);
      copy.copyTo(sums);
      for (int i = 0; i < count; i++) {
        requireEqual(sums[i], term(root, i), "element", i);
      }
      List.of(tensor, in, out, copy).forEach(Tensor::close);
    }
  }

  @Test
  void readingAloneIsRefusedAndTheCommunicatorLives() throws Exception {
    try (Processes processes = processes("ab").with("WINDLASS_PEER_MEMORY", "readv")) {
      for (Processes.Rank rank : start(processes, "ab", "readingAlone")) {
        assertThat(rank.ended()).contains("refused, and goes on");
      }
    }
  }

  static void readingAlone() throws Exception {
    try (Communicator comm = Communicator.fromEnvironment(OPTIONS, SOON)) {
      Tensor tensor = Tensor.allocate(DType.F32, 100_000);
      assertThatThrownBy(() -> comm.allReduce(tensor, ReduceOp.SUM))
          .isInstanceOf(UnsupportedException.class)
          .hasMessageContaining("reads no memory of another host's");
      comm.barrier();
    }
    System.out.println("refused, and goes on");
  }

  private static void refuseExperts(Communicator comm) {
    int size = comm.size();
    try (ExpertParallel experts =
            ExpertParallel.open(comm, ExpertOptions.of(size, 1, 8, 4, DType.F32));
        ExpertRouting routing = experts.routing()) {
      Tensor tokens = Tensor.allocate(DType.F32, 4, 8);
      Tensor ids = Tensor.allocate(DType.I32, 4, 1);
      assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
          .isInstanceOf(UnsupportedException.class)
          .hasMessageMatching("(?s).*the communicator spans [24] hosts.*");
      comm.barrier();
    }
  }

  /** Which lie on one host or on several. */
  private static void runParts(Communicator comm) {
    int rank = comm.rank();
    int size = comm.size();
    for (int round = 0; round < 3; round++) {
      try (Communicator reversed = comm.split(0, -rank);
          Communicator half = comm.split(rank % 2, rank);
          Communicator quarter = half.split(half.rank() % 2, 0);
          Communicator first = comm.split(rank < size / 2 ? 0 : -1, 0)) {
        assertThat(reversed.rank()).isEqualTo(size - 1 - rank);
        requireSum(reversed, rank, (long) size * (size - 1) / 2);
        requireSum(half, 1, half.size());
        requireSum(quarter, 1, quarter.size());
        assertThat(first == null).isEqualTo(rank >= size / 2);
        if (first != null) {
          requireSum(first, 1, size / 2);
        }
      }
      comm.barrier();
    }
  }

  private static void requireSum(Communicator comm, long own, long sum) {
    try (Tensor tensor = Tensor.allocate(DType.I64, 1000)) {
      tensor.fill(own);
      comm.allReduce(tensor, ReduceOp.SUM);
      long[] values = new long[1000];
      tensor.copyTo(values);
      assertThat(values).containsOnly(sum);
    }
  }

  /** From one layout to others, of ranks on hosts a, b, a and b. */
  private static void redistribute(Communicator comm) {
    try (Tensor rows = Tensor.allocate(DType.F32, 64, 500);
        Tensor columns = Tensor.allocate(DType.F32, 256, 125);
        Tensor whole = Tensor.allocate(DType.F32, 256, 500)) {
      int rank = comm.rank();
      float[] own = new float[64 * 500];
      for (int i = 0; i < own.length; i++) {
        own[i] = (rank * 64 + i / 500) * 1000f + i % 500;
      }
      TransferBuilder builder =
          TransferBuilder.of(comm)
              .add(
                  TensorSpec.of("t", DType.F32, Layout.parse("4:S0"), 256, 500),
                  rows,
                  TensorSpec.of("t", DType.F32, Layout.parse("4:S1"), 256, 500),
                  columns)
              .add(
                  TensorSpec.of("t", DType.F32, Layout.parse("4:S0"), 256, 500),
                  rows,
                  TensorSpec.of("whole", DType.F32, Layout.parse("4:R"), 256, 500),
                  whole);
      assertThat(builder.plans().get(0).options().hosts()).isEqualTo(Hosts.of(0, 1, 0, 1));
      try (Transfer transfer = builder.register()) {
        for (int round = 1; round <= 3; round++) {
          float[] scaled = new float[own.length];
          for (int i = 0; i < own.length; i++) {
            scaled[i] = own[i] * round;
          }
          rows.copyFrom(scaled);
          transfer.run();
          float[] moved = new float[256 * 125];
          columns.copyTo(moved);
          for (int i = 0; i < moved.length; i++) {
            float there = i / 125 * 1000f + rank * 125 + i % 125;
            requireEqual(moved[i], there * round, "element", i);
          }
          float[] gathered = new float[256 * 500];
          whole.copyTo(gathered);
          for (int i = 0; i < gathered.length; i++) {
            requireEqual(gathered[i], (i / 500 * 1000f + i % 500) * round, "element", i);
          }
        }
      }
    }
  }

  /** Hosts of the ranks, and who is killed: one of a host's two, or a whole host. */
  static Stream<Arguments> kills() {
    return Stream.of(arguments("aabb", 2), arguments("abb", 0), arguments("abcd", 1))
        .limit(Boolean.getBoolean("windlass.long") ? 3 : 2);
  }

  @ParameterizedTest
  @MethodSource("kills")
  void allNameAKilledProcessAndGoOnWithoutIt(String hosts, int victim) throws Exception {
    try (Processes processes = processes(hosts).with("TEST_VICTIM", "" + victim)) {
      List<Processes.Rank> ranks = start(processes, hosts, "goOn");
      ranks.get(victim).await("the others wait");
      ranks.get(victim).kill();
      for (int rank = 0; rank < hosts.length(); rank++) {
        if (rank != victim) {
          assertThat(ranks.get(rank).ended())
              .contains("lost: [" + victim + "], ")
              .contains("rank " + victim)
              .contains("all is as it should be");
        }
      }
    }
  }

  static void goOn() throws Exception {
    int victim = Integer.parseInt(System.getenv("TEST_VICTIM"));
    Communicator comm = Communicator.fromEnvironment(OPTIONS, SOON);
    int size = comm.size();
    int own = comm.rank();
    comm.barrier();
    if (own == victim) {
      System.out.println("the others wait");
      Thread.sleep(60_000);
    }
    PeerLostException lost = (PeerLostException) catchThrowable(comm::barrier);
    System.out.println("lost: " + lost.faultyRanks() + ", " + lost.getMessage());
    // The old one may be closed as soon as there is a new one.
    try (Communicator dead = comm) {
      comm = dead.shrink(SOON);
    }
    List<Integer> others = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      if (rank != victim) {
        others.add(rank);
      }
    }
    assertThat(comm.parentRanks()).isEqualTo(others);
    requireSum(comm, own, (long) size * (size - 1) / 2 - victim);
    try (Communicator reversed = comm.split(0, -comm.rank())) {
      requireSum(reversed, own, (long) size * (size - 1) / 2 - victim);
    }
    comm.close();
    System.out.println("all is as it should be");
  }

  @Test
  void aHostThatStandsStillIsLostAfterItsSilence() throws Exception {
    String hosts = "abb";
    try (Processes processes = processes(hosts).with("WINDLASS_HOST_SILENCE", "1")) {
      List<Processes.Rank> ranks = start(processes, hosts, "silentHost");
      ranks.get(1).await("it waits");
      ranks.get(2).await("it waits");
      ranks.get(1).signal("STOP");
      ranks.get(2).signal("STOP");
      assertThat(ranks.get(0).ended())
          .contains("lost: [1, 2]")
          .contains("host 1 (b) is lost")
          .contains("nothing came from it for");
    }
  }

  static void silentHost() throws Exception {
    try (Communicator comm = Communicator.fromEnvironment(OPTIONS, SOON)) {
      comm.barrier();
      if (comm.rank() > 0) {
        System.out.println("it waits");
        Thread.sleep(60_000);
      }
      PeerLostException lost = (PeerLostException) catchThrowable(comm::barrier);
      System.out.println("lost: " + lost.faultyRanks() + ", " + lost.getMessage());
    }
  }

  @Test
  void aProcessThatNeverComesIsNamed() throws Exception {
    String hosts = "abb";
    List<String> said = new ArrayList<>();
    // By the deadline the others have to come, which a busy machine has come later.
    for (int seconds = 4; seconds <= 64; seconds *= 4) {
      said.clear();
      try (Processes processes = processes(hosts).with("TEST_SECONDS", "" + seconds)) {
        for (int process = 0; process < 2; process++) {
          start(processes, hosts, process, "refused", Map.of());
        }
        String named = "rank 2 of 3 had not joined at " + processes.address();
        for (Processes.Rank rank : processes.all()) {
          said.add(rank.ended());
        }
        if (said.stream()
            .allMatch(
                each -> each.contains("DeadlineExceededException [2]") && each.contains(named))) {
          return;
        }
        if (!said.stream().allMatch(each -> each.contains("DeadlineExceededException"))) {
          break;
        }
      }
    }
    throw new AssertionError("rank 2 is not named: " + said);
  }

  /** One process with those variables is what the others hear of. */
  private void assertRefused(
      String hosts, int faultyRank, Map<String, String> others, String... said) throws Exception {
    try (Processes processes = processes(hosts).with("TEST_SECONDS", "80")) {
      for (int process = 0; process < hosts.length(); process++) {
        start(processes, hosts, process, "refused", process == faultyRank ? others : Map.of());
      }
      for (Processes.Rank rank : processes.all()) {
        assertThat(rank.ended()).contains(said);
      }
    }
  }

  static void refused() throws Exception {
    Duration deadline = Duration.ofSeconds(Integer.parseInt(System.getenv("TEST_SECONDS")));
    WindlassException failure =
        (WindlassException)
            catchThrowable(() -> Communicator.fromEnvironment(OPTIONS, deadline).close());
    System.out.println(
        failure.getClass().getSimpleName() + " " + failure.faultyRanks() + ": " + failure.getMessage());
  }

  @Test
  void aProcessWithoutUcxSaysSoToAll() throws Exception {
    Files.createFile(folder.resolve("libucp.so.0"));
    assertRefused(
        "abb",
        2,
        Map.of("LD_LIBRARY_PATH", folder.toString()),
        "UnsupportedException [2]: rank 2 on host 1 (b): ranks on several hosts need UCX, by"
            + " libwindlass-ucx.so: ",
        "install UCX (Debian: libucx0)");
  }

  @Test
  void aNetworkThatIsNotThereIsNamedToAll() throws Exception {
    assertRefused(
        "aab",
        1,
        Map.of("WINDLASS_UCX_NET_DEVICES", "nosuch0"),
        "UnsupportedException [1]: rank 1 on host 0 (a): UCX finds no network device \"nosuch0\""
            + " here, but: ",
        "WINDLASS_UCX_NET_DEVICES");
  }

  @Test
  void portsThatAreNoneOrTakenAreNamedToAll() throws Exception {
    assertRefused(
        "ab",
        1,
        Map.of("WINDLASS_UCX_PORT_RANGE", "7100-x"),
        "InvalidArgumentException [1]: rank 1 on host 1 (b): WINDLASS_UCX_PORT_RANGE is \"7100-x\"");
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      String range = taken.getLocalPort() + "-" + taken.getLocalPort();
      assertRefused(
          "ab",
          1,
          Map.of("WINDLASS_UCX_PORT_RANGE", range),
          "ResourceException [1]: rank 1 on host 1 (b): none of the ports " + range);
    }
  }

  @Test
  void whatNoHostIsCalledIsRefused() {
    Map<String, String> rank =
        Map.of("WINDLASS_RANK", "0", "WINDLASS_WORLD_SIZE", "2", "WINDLASS_JOB", "names");
    for (String[] setting :
        new String[][] {
          {"WINDLASS_HOST", "two words"},
          {"WINDLASS_HOST", "x".repeat(64)},
          {"WINDLASS_HOST_SILENCE", "0.4"},
          {"WINDLASS_HOST_SILENCE", "-1"},
          {"WINDLASS_HOST_SILENCE", "soon"},
        }) {
      Map<String, String> variables = new HashMap<>(rank);
      variables.put(setting[0], setting[1]);
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> LocalGroup.fromEnvironment(variables, 1, OPTIONS, SOON),
              () -> LaunchEnvironment.of(Map.of(setting[0], setting[1])))) {
        assertThatThrownBy(call)
            .isInstanceOf(InvalidArgumentException.class)
            .hasMessageContaining(setting[0] + " is '" + setting[1] + "'");
      }
    }
  }

  static void collectives() throws Exception {
    try (Communicator comm = Communicator.fromEnvironment(OPTIONS, SOON)) {
      runCollectives(comm);
    }
    System.out.println("all is as it should be");
  }

  /** As from the jar of a platform, whose copies are gone once they are loaded. */
  @Test
  void nativesOfTheClassPathBringTheirUcx() throws Exception {
    String hosts = "ab";
    try (Processes processes = processes(hosts).ofClassPath()) {
      for (Processes.Rank rank : start(processes, hosts, "collectives")) {
        assertThat(rank.ended()).contains("all is as it should be");
      }
    }
  }
}
