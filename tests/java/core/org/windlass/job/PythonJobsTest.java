// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.windlass.job.JobThreads.SOON;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.link.TakenBack;
import org.windlass.testing.Processes;
import org.windlass.testing.Ucx;

/**
 * A job of Python ranks that sends to one of JVMs, here threads of the test's JVM, or processes.
 */
@Timeout(240)
class PythonJobsTest {
  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.defaults().withDeadline(SOON);

  @TempDir private Path folder;
  private final String rendezvous = "python-" + UUID.randomUUID();
  private Processes processes;

  /** As tests/python/ranks.py has them, cut for the receivers. */
  private record Taken(String name, long[] shape, DType dtype, String layout) {
    double value(long index, long version) {
      return (index % 61 + 3 * version) % 120;
    }
  }

  private static List<Taken> tensors(int ranks) {
    return List.of(
        new Taken("columns", new long[] {6, 40}, DType.F32, ranks + ":S0"),
        new Taken("rows", new long[] {7, 5}, DType.F32, ranks + ":S1"),
        new Taken("same", new long[] {9}, DType.I64, ranks + ":S0"),
        new Taken("one", new long[] {3, 4}, DType.F64, ranks + ":R"),
        new Taken("sum", new long[] {4, 6}, DType.F32, ranks + ":S1"),
        new Taken("sum", new long[] {4, 6}, DType.BF16, "1:R"),
        new Taken("cast", new long[] {33}, DType.BF16, ranks + ":R"),
        new Taken("cube", new long[] {2, 3, 4}, DType.U8, ranks + ":S1"));
  }

  private static final List<Taken> ONE =
      List.of(new Taken("w", new long[] {8, 4}, DType.F32, "2:S1"));

  @AfterEach
  void endProcesses() {
    processes.close();
  }

  @BeforeEach
  void closeFolder() throws Exception {
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
    processes =
        new Processes(PythonJobsTest.class, 1, Files.createDirectory(folder.resolve("tokens")));
  }

  private Map<String, String> environment(String host) {
    return Map.of(
        "WINDLASS_LINK_RENDEZVOUS", rendezvous,
        "XDG_RUNTIME_DIR", folder.toString(),
        "WINDLASS_HOST", host);
  }

  private Map<String, String> launched(String job, int rank, int size, String host) {
    Map<String, String> variables = new HashMap<>(environment(host));
    variables.put("WINDLASS_RANK", "" + rank);
    variables.put("WINDLASS_WORLD_SIZE", "" + size);
    variables.put("WINDLASS_JOB", job + rendezvous);
    return variables;
  }

  private List<Processes.Rank> pythonRanks(String function) throws Exception {
    return pythonRanks(function, List.of("", ""));
  }

  /** Each on the host of that name. */
  private List<Processes.Rank> pythonRanks(String function, List<String> hosts) throws Exception {
    List<Processes.Rank> pythonRanks = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      Map<String, String> variables = launched("trainer", rank, 2, hosts.get(rank));
      pythonRanks.add(processes.startPython(rank, function, variables));
    }
    return pythonRanks;
  }

  /** A job of threads. */
  private FutureTask<Void> fleet(int ranks, JobThreads.Body body) {
    return fleet(ranks, "", body);
  }

  private FutureTask<Void> fleet(int ranks, String host, JobThreads.Body body) {
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              try (LocalGroup group = LocalGroup.of(ranks, OPTIONS)) {
                group.run(
                    comm -> {
                      try (Job job = Job.of("fleet", comm, OPTIONS, environment(host), SOON)) {
                        body.run(job);
                      } catch (WindlassException e) {
                        throw e;
                      } catch (Exception e) {
                        throw new IllegalStateException(e);
                      }
                    });
              }
              return null;
            });
    new Thread(task, "fleet").start();
    return task;
  }

  /** Waits for both jobs; each Python rank has said last of all that it is done. */
  private static void requireDone(FutureTask<Void> fleet, List<Processes.Rank> pythonRanks)
      throws Exception {
    fleet.get(120, TimeUnit.SECONDS);
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.ended()).endsWith("done\n");
    }
  }

  private static LinkTransfer register(Link link, Job job, List<Taken> tensors) {
    return builder(link, job, tensors).register(SOON);
  }

  private static LinkTransferBuilder builder(Link link, Job job, List<Taken> tensors) {
    LinkTransferBuilder builder = link.transferBuilder();
    for (Taken each : tensors) {
      Layout layout = Layout.parse(each.layout);
      if (layout.mesh().contains(job.communicator().rank())) {
        long[] local = layout.localShape(each.shape, job.communicator().rank());
        builder.into(each.name, each.shape, Tensor.allocate(each.dtype, local), layout);
      }
    }
    return builder;
  }

  /** Every element of a version, by its place in the whole. */
  private static void require(LinkTransfer transfer, Job job, List<Taken> tensors, long version) {
    int rank = job.communicator().rank();
    for (Taken each : tensors) {
      Layout layout = Layout.parse(each.layout);
      if (!layout.mesh().contains(rank) || each.name.equals("sum")) {
        continue; // of two views: by their own test
      }
      requirePart(transfer.tensor(each.name), each, layout.localRegion(each.shape, rank), version);
    }
  }

  private static void requirePart(Tensor part, Taken of, Region region, long version) {
    long[] shape = region.shape();
    long[] at = new long[shape.length];
    for (long i = 0; i < part.numel(); i++) {
      long rest = i;
      long index = 0;
      for (int d = shape.length - 1; d >= 0; d--) {
        at[d] = rest % shape[d];
        rest /= shape[d];
      }
      for (int d = 0; d < shape.length; d++) {
        index = index * of.shape[d] + region.intervals(d).get(0).start() + at[d];
      }
      assertThat(part.getDouble(at))
          .as("%s of version %d at %s", of.name, version, Arrays.toString(at))
          .isEqualTo(of.value(index, version));
    }
  }

  /** One rank and three: on other hosts, and here without UCX or in the long form. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3})
  void versionsGoFromPythonToEachLayout(int ranks) throws Exception {
    assumeTrue(
        ranks == 2 || !Ucx.isThere() || Boolean.getBoolean("windlass.long"),
        "-Dwindlass.long=true runs it");
    sendVersions(List.of("", ""), "", ranks);
  }

  @ParameterizedTest
  @CsvSource({"a, a, b, 2", "a, b, c, 1", "a, b, b, 3"})
  void versionsGoFromPythonToJobsOnOtherHosts(String one, String other, String fleet, int ranks)
      throws Exception {
    Ucx.require();
    sendVersions(List.of(one, other), fleet, ranks);
  }

  private void sendVersions(List<String> hosts, String fleetHost, int ranks) throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("trainer", hosts);
    FutureTask<Void> fleet =
        fleet(
            ranks,
            fleetHost,
            job -> {
              List<Taken> tensors = tensors(ranks);
              try (Link link = job.connect("policy", Role.TARGET, SOON);
                  LinkTransfer transfer = register(link, job, tensors)) {
                for (long version = 1; version <= 5; version++) {
                  assertThat(transfer.receive(SOON)).isEqualTo(version);
                  require(transfer, job, tensors, version);
                }
              }
            });
    requireDone(fleet, pythonRanks);
  }

  /** The sum of both Python ranks' terms, in either view of it. */
  @Test
  void termsOfPythonRanksAreReduced() throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("trainer");
    FutureTask<Void> fleet =
        fleet(
            1,
            job -> {
              List<Taken> tensors = tensors(1);
              Tensor sum = Tensor.allocate(DType.F32, 4, 6);
              Tensor rounded = Tensor.allocate(DType.BF16, 4, 6);
              try (Link link = job.connect("policy", Role.TARGET, SOON)) {
                LinkTransferBuilder builder =
                    builder(
                        link, job, tensors.stream().filter(t -> !t.name.equals("sum")).toList());
                Layout layout = Layout.parse("1:R");
                builder.into("sum", new long[] {4, 6}, sum, layout);
                builder.into("sum", new long[] {4, 6}, rounded, layout);
                try (LinkTransfer transfer = builder.inPlace().register(SOON)) {
                  for (long version = 1; version <= 5; version++) {
                    transfer.receive(SOON);
                    for (Tensor each : List.of(sum, rounded)) {
                      Region all = layout.localRegion(new long[] {4, 6}, 0);
                      requirePart(each, tensors.get(4), all, version);
                    }
                  }
                }
              }
            });
    requireDone(fleet, pythonRanks);
  }

  @Test
  void bothSidesSayAlikeWhatTheyRefuse() throws Exception {
    Map<String, Class<? extends WindlassException>> refused = new LinkedHashMap<>();
    refused.put("part", InvalidArgumentException.class);
    refused.put("none", MismatchException.class);
    refused.put("outside", InvalidArgumentException.class);
    refused.put("name", MismatchException.class);
    refused.put("shape", MismatchException.class);
    refused.put("layout", MismatchException.class);
    refused.put("mesh", MismatchException.class);
    refused.put("garbage", MismatchException.class);
    refused.put("checksums", UnsupportedException.class);
    List<Processes.Rank> pythonRanks =
        pythonRanks("refused " + String.join(" ", refused.keySet()));
    FutureTask<Void> fleet =
        fleet(
            2,
            job -> {
              try (Link link = job.connect("policy", Role.TARGET, SOON)) {
                for (String what : refused.keySet()) {
                  LinkTransferBuilder builder = builder(link, job, ONE);
                  assertThatThrownBy(
                          () ->
                              (what.equals("checksums") ? builder.checksums() : builder)
                                  .register(SOON))
                      .as(what)
                      .isInstanceOf(refused.get(what));
                }
                try (LinkTransfer transfer = register(link, job, ONE)) {
                  assertThat(transfer.receive(SOON)).isEqualTo(1);
                  require(transfer, job, ONE, 1);
                }
              }
            });
    requireDone(fleet, pythonRanks);
    for (Processes.Rank pythonRank : pythonRanks) {
      String said = pythonRank.said();
      refused.forEach(
          (what, kind) -> assertThat(said).contains(what + " " + kind.getSimpleName()));
      assertThat(said)
          .contains(
              "register: source of tensor 'w' on rank 0 is f32[3, 4]; under 2:S0 rank 0 holds"
                  + " f32[4, 4]",
              "rank 0 holds a part of that and has not named it",
              "register: source of tensor 'w' on rank 0 is f32[8, 4]; under 1@1:R rank 0 holds"
                  + " f32[0]",
              "garbage MismatchException");
    }
  }

  /** Of each kind, one link: it ends, and receivers keep the version before. */
  @Test
  void arraysThatChangeInPlaceAreNotSent() throws Exception {
    List<String> kinds =
        List.of("dtype", "strides", "shape", "resize", "base", "order", "tensor", "early");
    List<Processes.Rank> pythonRanks = pythonRanks("changes " + String.join(" ", kinds));
    FutureTask<Void> fleet =
        fleet(
            1,
            job -> {
              for (String kind : kinds) {
                try (Link link = job.connect("policy", Role.TARGET, SOON);
                    LinkTransfer transfer =
                        register(
                            link,
                            job,
                            List.of(new Taken("w", new long[] {8, 4}, DType.F32, "1:R")))) {
                  if (!kind.equals("early")) {
                    assertThat(transfer.receive(SOON)).as(kind).isEqualTo(1);
                  }
                  assertThatThrownBy(() -> transfer.receive(SOON))
                      .as(kind)
                      .isInstanceOf(WindlassException.class)
                      .hasMessageContaining("tensor 'w' has changed since it was added: ");
                }
              }
            });
    requireDone(fleet, pythonRanks);
  }

  @Test
  void receiversAreToldWhatEndedAPythonRank() throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("throws_in_link");
    FutureTask<Void> fleet =
        fleet(
            2,
            job -> {
              try (Link link = job.connect("policy", Role.TARGET, SOON);
                  LinkTransfer transfer = register(link, job, ONE)) {
                assertThatThrownBy(() -> transfer.receive(SOON))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("rank 1 ended with KeyError: 'mine'");
              }
            });
    fleet.get(120, TimeUnit.SECONDS);
    assertThat(pythonRanks.get(0).ended()).contains("rank 1 ended with KeyError: 'mine'");
  }

  @Test
  void aVersionThatNobodyAsksForIsSkipped() throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("late");
    FutureTask<Void> fleet =
        fleet(
            2,
            job -> {
              List<Taken> tensors = tensors(2);
              try (Link link = job.connect("policy", Role.TARGET, SOON);
                  LinkTransfer transfer = register(link, job, tensors)) {
                for (Processes.Rank pythonRank : pythonRanks) {
                  pythonRank.await("is there");
                }
                assertThat(transfer.receive(SOON)).isEqualTo(2);
                require(transfer, job, tensors, 2);
              }
            });
    fleet.get(120, TimeUnit.SECONDS);
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.ended())
          .contains("DeadlineExceededException send of version 1 on link");
    }
  }

  /** The send that is in progress waits until receivers ask again. */
  @Test
  void aVersionThatReceiversTakeBackIsSentAgain() throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("trainer");
    FutureTask<Void> fleet =
        fleet(
            2,
            job -> {
              try (Link link = job.connect("policy", Role.TARGET, SOON);
                  LinkTransfer transfer = register(link, job, tensors(2))) {
                TakenBack.takeBack(transfer, SOON);
                for (long version = 1; version <= 5; version++) {
                  assertThat(transfer.receive(SOON)).isEqualTo(version);
                  require(transfer, job, tensors(2), version);
                }
              }
            });
    requireDone(fleet, pythonRanks);
  }

  /** Receivers wait while the Python ranks finish, or ask once these have ended. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void receiversGetTheEndOfPythonRanksAsAResult(boolean isWaiting) throws Exception {
    finish(isWaiting, List.of("", ""), "");
  }

  @Test
  void receiversThatHaveLeftAreNoFailureOfFinish() throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("finishes alone");
    FutureTask<Void> fleet =
        fleet(
            2,
            job -> {
              try (Link link = job.connect("policy", Role.TARGET, SOON);
                  LinkTransfer transfer = register(link, job, tensors(2))) {
                assertThat(transfer.receive(SOON)).isEqualTo(1);
                assertThat(transfer.receive(SOON)).isEqualTo(2);
              }
            });
    requireDone(fleet, pythonRanks);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void receiversOnOtherHostsGetTheEndOfPythonRanks(boolean isWaiting) throws Exception {
    Ucx.require();
    finish(isWaiting, List.of("a", "b"), "c");
  }

  private void finish(boolean isWaiting, List<String> hosts, String fleetHost) throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks(isWaiting ? "finishes" : "finishes late", hosts);
    FutureTask<Void> fleet =
        fleet(
            2,
            fleetHost,
            job -> {
              List<Taken> tensors = tensors(2);
              try (Link link = job.connect("policy", Role.TARGET, SOON);
                  LinkTransfer transfer = register(link, job, tensors)) {
                for (long version = 1; version <= 2; version++) {
                  assertThat(transfer.tryReceive(SOON)).hasValue(version);
                  require(transfer, job, tensors, version);
                }
                if (!isWaiting) {
                  for (Processes.Rank pythonRank : pythonRanks) {
                    pythonRank.ended();
                  }
                }
                assertThat(transfer.tryReceive(SOON)).isEmpty();
                assertThat(transfer.isFinished()).isTrue();
                require(transfer, job, tensors, 2);
              }
            });
    requireDone(fleet, pythonRanks);
  }

  @Test
  void pythonRanksThatWouldSendWhereAnotherJobDoesAreRefused() throws Exception {
    CountDownLatch there = new CountDownLatch(1);
    CountDownLatch over = new CountDownLatch(1);
    FutureTask<Void> fleet =
        fleet(
            1,
            job -> {
              catchThrowable(() -> job.connect("policy", Role.SOURCE, Duration.ofMillis(500)));
              there.countDown();
              over.await();
            });
    there.await();
    try {
      List<Processes.Rank> pythonRanks = pythonRanks("second");
      assertThat(pythonRanks.get(0).ended())
          .contains("logged job 'trainer', link 'policy': another sends it already: job 'fleet'")
          .contains("MismatchException connect", "another sends it already: job 'fleet'");
      pythonRanks.get(1).ended();
    } finally {
      over.countDown();
    }
    fleet.get(120, TimeUnit.SECONDS);
  }

  /** Strikes at a moment of its own each time; the Python ranks that come next connect. */
  @Test
  void aPythonRankThatIsKilledAmidVersionsIsNamedAndComesAgain() throws Exception {
    int kills = Boolean.getBoolean("windlass.long") ? 20 : 2; // one of each rank
    Random random = new Random(5);
    List<List<Processes.Rank>> pythonRanks = new ArrayList<>();
    pythonRanks.add(pythonRanks("again_and_again"));
    FutureTask<Void> fleet =
        fleet(
            2,
            job -> {
              for (int kill = 0; kill < kills; kill++) {
                int killed = kill % 2;
                try (Link link = job.connect("policy", Role.TARGET, SOON);
                    LinkTransfer transfer = register(link, job, tensors(2))) {
                  transfer.receive(SOON);
                  if (job.communicator().rank() == 0) {
                    strike(pythonRanks, killed, random.nextInt(30));
                  }
                  assertThatThrownBy(() -> receiveOn(transfer, job))
                      .isInstanceOfSatisfying(
                          PeerLostException.class,
                          e -> assertThat(e.faultyRanks()).contains(killed));
                  long held = transfer.version().orElseThrow();
                  require(transfer, job, tensors(2), held);
                }
                if (job.communicator().rank() == 0) {
                  pythonRanks.get(pythonRanks.size() - 1).forEach(Processes.Rank::kill);
                  if (kill + 1 < kills) {
                    pythonRanks.add(pythonRanks("again_and_again"));
                  }
                }
              }
            });
    fleet.get(200, TimeUnit.SECONDS);
  }

  private static void strike(List<List<Processes.Rank>> pythonRanks, int rank, int afterMs) {
    Processes.Rank pythonRank = pythonRanks.get(pythonRanks.size() - 1).get(rank);
    Thread striking =
        new Thread(
            () -> {
              try {
                Thread.sleep(afterMs);
              } catch (InterruptedException e) {
                return;
              }
              pythonRank.kill();
            });
    striking.start();
  }

  private static void receiveOn(LinkTransfer transfer, Job job) {
    while (true) {
      require(transfer, job, tensors(2), transfer.receive(SOON));
    }
  }

  /** What a process of the fleet runs that is killed. */
  static void inference() throws Exception {
    try (Job job = Job.fromEnvironment("fleet", OPTIONS, SOON);
        Link link = job.connect("policy", Role.TARGET, SOON);
        LinkTransfer transfer = register(link, job, tensors(2))) {
      System.out.println("received " + transfer.receive(SOON));
      receiveOn(transfer, job);
    }
  }

  @Test
  void pythonRanksNameAPeerThatIsKilledAndConnectAgain() throws Exception {
    List<Processes.Rank> pythonRanks = pythonRanks("again_and_again");
    for (int round = 0; round < 2; round++) {
      List<Processes.Rank> fleet = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        fleet.add(processes.start(rank, "inference", launched("fleet" + round, rank, 2, "")));
      }
      fleet.get(1).await("received");
      fleet.get(1).kill();
      for (Processes.Rank pythonRank : pythonRanks) {
        pythonRank.await("[3]");
      }
      fleet.get(0).await("PeerLostException");
      fleet.get(0).kill();
    }
    for (Processes.Rank pythonRank : pythonRanks) {
      assertThat(pythonRank.said()).containsPattern("(PeerLost|Aborted)Exception \\[3\\]");
    }
  }

  @Test
  void addRefusesWrongArguments() throws Exception {
    assertThat(processes.startPython(0, "adds", Map.of()).ended()).endsWith("done\n");
  }

  @Test
  void aPythonRankChecksItsPartOfThePlan() throws Exception {
    assertThat(processes.startPython(0, "tampered", Map.of()).ended()).endsWith("done\n");
  }

  @Test
  void pythonRunsTheProtocolsOfTheseClasses() throws Exception {
    assertThat(processes.startPython(0, "versions", Map.of()).ended())
        .isEqualTo(JobConnector.versions() + "\n");
  }
}
