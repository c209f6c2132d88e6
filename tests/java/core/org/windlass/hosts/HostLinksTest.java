// SPDX-License-Identifier: Apache-2.0
package org.windlass.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.job.Job;
import org.windlass.job.Role;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.testing.Processes;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Ucx;

/**
 * Links whose ranks WINDLASS_HOST puts on several hosts: versions arrive whole or not at all,
 * though a host is killed or stands still on the way. Methods without an annotation are what the
 * processes run.
 */
@Tag("hosts")
@Timeout(180)
class HostLinksTest {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.defaults().withDeadline(SOON);
  private static final int TENSORS = 3;
  private static final long[] SHAPE = {64, 3000};
  private static final long VERSIONS = 20;

  /** Ranks 0 and 1 send to ranks 2 and 3. */
  private static final DeviceMesh SENDERS = DeviceMesh.of(2);

  private static final DeviceMesh RECEIVERS = DeviceMesh.of(2).at(2);

  @TempDir Path folder;

  @BeforeEach
  void requireUcx() {
    Ucx.require();
  }

  private Processes processes(int size) throws Exception {
    return new Processes(HostLinksTest.class, size, folder);
  }

  /** Which hosts ranks are on, each with a group of its own; the second and the last in place. */
  private static final List<String> SPREADS = List.of("aabb", "abab", "abcd", "abbb");

  @Test
  void versionsGoFromHostToHost() throws Exception {
    String addresses =
        Stream.generate(Processes::loopback)
            .limit(SPREADS.size())
            .collect(Collectors.joining(" "));
    try (Processes processes = processes(4).with("TEST_ADDRESSES", addresses)) {
      for (Processes.Rank rank : processes.startOnHosts(SPREADS.get(0), "versions")) {
        String said = rank.ended();
        for (String hosts : SPREADS) {
          assertThat(said).contains(hosts + " holds " + VERSIONS);
        }
      }
    }
  }

  static void versions() throws Exception {
    String[] addresses = System.getenv("TEST_ADDRESSES").split(" ");
    Map<String, String> variables = new HashMap<>(System.getenv());
    int rank = Integer.parseInt(variables.get("WINDLASS_RANK"));
    for (int i = 0; i < SPREADS.size(); i++) {
      String hosts = SPREADS.get(i);
      boolean inPlace = i % 2 == 1;
      variables.put("WINDLASS_HOST", "" + hosts.charAt(rank));
      variables.put("WINDLASS_RENDEZVOUS", addresses[i]);
      try (LocalGroup group = LocalGroup.fromEnvironment(variables, 1, OPTIONS, SOON)) {
        group.run(
            comm -> {
              try (Side side = new Side(comm, inPlace)) {
                for (long version = 1; version <= VERSIONS; version++) {
                  side.move(version);
                  side.requireHolds(version);
                }
                side.end();
                side.requireHolds(VERSIONS);
              }
            });
      }
      System.out.println(hosts + " holds " + VERSIONS);
    }
  }

  /** What happens to all ranks of a host: senders, receivers or both. */
  private interface Fault {
    void strike(Processes.Rank rank) throws Exception;
  }

  @RandomSeeds(value = 1, inLong = 20)
  void aHostThatIsKilledLeavesWholeVersions(long seed) throws Exception {
    try (Processes processes = processes(4)) {
      strike(processes, seed, Processes.Rank::kill);
    }
  }

  @RandomSeeds(value = 1, inLong = 20)
  void aHostThatStandsStillLeavesWholeVersions(long seed) throws Exception {
    try (Processes processes = processes(4).with("WINDLASS_HOST_SILENCE", "1")) {
      for (Processes.Rank stopped : strike(processes, seed, rank -> rank.signal("STOP"))) {
        stopped.signal("CONT");
        assertThat(stopped.ended()).contains("it is whole");
      }
    }
  }

  /** Strikes a host while versions move; the ranks that lived there, once all others have ended. */
  private static List<Processes.Rank> strike(Processes processes, long seed, Fault fault)
      throws Exception {
    Random random = new Random(seed);
    String hosts = List.of("aabb", "abab", "abcd", "abbc").get(random.nextInt(4));
    char victim = hosts.charAt(random.nextInt(4));
    List<Processes.Rank> ranks = processes.startOnHosts(hosts, "endlessVersions");
    for (Processes.Rank rank : ranks) {
      rank.await("moved 3");
    }
    Thread.sleep(random.nextInt(60));
    List<Processes.Rank> struck = new ArrayList<>();
    for (int rank = 0; rank < 4; rank++) {
      if (hosts.charAt(rank) == victim) {
        fault.strike(ranks.get(rank));
        struck.add(ranks.get(rank));
      }
    }
    for (int rank = 0; rank < 4; rank++) {
      if (hosts.charAt(rank) != victim) {
        assertThat(ranks.get(rank).ended()).as(hosts + " less " + victim).contains("it is whole");
      }
    }
    return struck;
  }

  static void endlessVersions() throws Exception {
    try (Communicator comm = Communicator.fromEnvironment(OPTIONS, SOON);
        Side side = new Side(comm, false)) {
      long[] moved = {0};
      WindlassException lost =
          catchThrowableOfType(
              WindlassException.class,
              () -> {
                while (true) {
                  side.move(moved[0] + 1);
                  if (++moved[0] == 3) {
                    System.out.println("moved 3");
                  }
                }
              });
      assertThat(lost).isInstanceOf(PeerLostException.class);
      side.requireHolds(moved[0]);
      System.out.println("it is whole: " + moved[0]);
    }
  }

  /** Without an assertion of AssertJ for each, which takes longer than the link. */
  private static void requireAll(Tensor tensor, long version) {
    float[] values = new float[Math.toIntExact(tensor.numel())];
    tensor.copyTo(values);
    for (float value : values) {
      if (value != version) {
        throw new AssertionError(tensor + " holds " + value + " of version " + version);
      }
    }
  }

  /** One rank's end of a link. */
  private static final class Side implements AutoCloseable {
    private final Link link;
    private final LinkTransfer transfer;
    private final List<Tensor> bound = new ArrayList<>();

    Side(Communicator comm, boolean inPlace) {
      link = Link.open(comm, "hosts", SENDERS, RECEIVERS);
      Layout from = SENDERS.layout(Placement.shard(1));
      Layout to = RECEIVERS.layout(Placement.shard(0));
      LinkTransferBuilder builder = link.transferBuilder();
      if (inPlace) {
        builder.inPlace();
      }
      for (int i = 0; i < TENSORS; i++) {
        Layout own = link.sends() ? from : to;
        bound.add(Tensor.allocate(DType.F32, own.localShape(SHAPE, comm.rank())));
        if (link.sends()) {
          builder.add("t" + i, SHAPE, bound.get(i), own);
        } else {
          builder.into("t" + i, SHAPE, bound.get(i), own);
        }
      }
      transfer = builder.register(SOON);
    }

    void move(long version) {
      if (link.sends()) {
        bound.forEach(tensor -> tensor.fill(version));
        transfer.send(version, SOON);
      } else {
        assertThat(transfer.receive(SOON)).isEqualTo(version);
      }
    }

    void end() {
      if (link.sends()) {
        transfer.finish(SOON);
      } else {
        assertThat(transfer.tryReceive(SOON)).isEmpty();
      }
      assertThat(transfer.isFinished()).isTrue();
    }

    void requireHolds(long version) {
      if (link.sends()) {
        return;
      }
      assertThat(transfer.version()).isEqualTo(OptionalLong.of(version));
      assertThat(transfer.incomplete()).isEmpty();
      for (int i = 0; i < TENSORS; i++) {
        requireAll(transfer.tensor("t" + i), version);
      }
    }

    @Override
    public void close() {
      transfer.close();
      link.close();
    }
  }

  /** Hosts of the ranks of each job; {@link #hostsThatStartAnewConnectAgain} has the last too. */
  static Stream<Arguments> hosts() {
    return Stream.of(arguments("aa", "bb"), arguments("ab", "ab"), arguments("ab", "cd"))
        .limit(Boolean.getBoolean("windlass.long") ? 3 : 2);
  }

  /** Two jobs, each of two ranks, connect across hosts, whichever they are on. */
  @ParameterizedTest
  @MethodSource("hosts")
  void jobsOfSeveralHostsConnect(String trainer, String inference) throws Exception {
    String rendezvous = "test-" + UUID.randomUUID();
    try (Processes source = processes(2);
        Processes target = processes(2)) {
      List<Processes.Rank> all = new ArrayList<>();
      all.addAll(start(source, trainer, rendezvous, "trainer", "jobs"));
      all.addAll(start(target, inference, rendezvous, "inference", "jobs"));
      for (Processes.Rank rank : all) {
        assertThat(rank.ended()).contains("holds " + VERSIONS);
      }
    }
  }

  private List<Processes.Rank> start(
      Processes processes, String hosts, String rendezvous, String job, String body)
      throws Exception {
    List<Processes.Rank> ranks = new ArrayList<>();
    Map<String, String> variables = new HashMap<>();
    variables.put("WINDLASS_LINK_RENDEZVOUS", rendezvous);
    variables.put("XDG_RUNTIME_DIR", folder.toString());
    variables.put("TEST_JOB", job);
    for (int process = 0; process < hosts.length(); process++) {
      ranks.add(processes.startOnHost(hosts, process, body, variables));
    }
    return ranks;
  }

  static void jobs() throws Exception {
    String name = System.getenv("TEST_JOB");
    Role role = name.equals("trainer") ? Role.SOURCE : Role.TARGET;
    Layout layout = SENDERS.layout(Placement.shard(role == Role.SOURCE ? 1 : 0));
    try (Job job = Job.fromEnvironment(name, OPTIONS, SOON);
        Link link = job.connect("policy", role, SOON);
        Tensor own =
            Tensor.allocate(DType.F32, layout.localShape(SHAPE, job.communicator().rank()))) {
      LinkTransferBuilder builder = link.transferBuilder();
      if (role == Role.SOURCE) {
        builder.add("t", SHAPE, own, layout);
      } else {
        builder.into("t", SHAPE, own, layout);
      }
      try (LinkTransfer transfer = builder.register(SOON)) {
        for (long version = 1; version <= VERSIONS; version++) {
          if (role == Role.SOURCE) {
            own.fill(version);
            transfer.send(version, SOON);
            continue;
          }
          assertThat(transfer.receive(SOON)).isEqualTo(version);
          requireAll(transfer.tensor("t"), version);
        }
        if (role == Role.SOURCE) {
          transfer.finish(SOON); // and leaves at once
        } else {
          Thread.sleep(ThreadLocalRandom.current().nextInt(50));
          assertThat(transfer.tryReceive(SOON)).isEmpty();
        }
        assertThat(transfer.isFinished()).isTrue();
      }
      System.out.println("holds " + VERSIONS);
    }
  }

  /** The hosts of one job are killed, and it starts anew there; the other job goes on. */
  @Test
  void hostsThatStartAnewConnectAgain() throws Exception {
    String rendezvous = "test-" + UUID.randomUUID();
    try (Processes source = processes(2);
        Processes target = processes(2);
        Processes anew = processes(2)) {
      List<Processes.Rank> trainers =
          start(source, "ab", rendezvous, "trainer", "sendsToWhoeverComes");
      List<Processes.Rank> killed =
          start(target, "cd", rendezvous, "inference", "receives");
      for (Processes.Rank rank : killed) {
        rank.await("received 3");
      }
      killed.forEach(Processes.Rank::kill);
      for (Processes.Rank rank : trainers) {
        rank.await("connects again");
      }
      for (Processes.Rank rank : start(anew, "cd", rendezvous, "inference", "receives")) {
        rank.await("received 10");
      }
    }
  }

  static void sendsToWhoeverComes() throws Exception {
    Layout layout = SENDERS.layout(Placement.shard(1));
    long version = 0;
    try (Job job = Job.fromEnvironment("trainer", OPTIONS, SOON);
        Tensor own =
            Tensor.allocate(DType.F32, layout.localShape(SHAPE, job.communicator().rank()))) {
      while (true) {
        try (Link link = job.connect("policy", Role.SOURCE, SOON);
            LinkTransfer transfer =
                link.transferBuilder().add("t", SHAPE, own, layout).register(SOON)) {
          version = most(job.communicator(), version); // one rank may have sent one more
          while (true) {
            own.fill(++version);
            transfer.send(version, SOON);
          }
        } catch (PeerLostException | AbortedException e) {
          System.out.println("connects again");
        }
      }
    }
  }

  /** Receivers whose hosts stand still don't hold up a source that finishes. */
  @Test
  void finishLastsNoLongerThanItsDeadline() throws Exception {
    String rendezvous = "test-" + UUID.randomUUID();
    try (Processes source = processes(2).with("WINDLASS_HOST_SILENCE", "0");
        Processes target = processes(2).with("WINDLASS_HOST_SILENCE", "0")) {
      List<Processes.Rank> trainers = start(source, "ab", rendezvous, "trainer", "finishesLate");
      List<Processes.Rank> fleet = start(target, "cd", rendezvous, "inference", "receives");
      for (Processes.Rank rank : fleet) {
        rank.await("received 1");
        rank.signal("STOP");
      }
      for (Processes.Rank rank : trainers) {
        assertThat(rank.ended()).contains("the receivers don't get the end of the versions");
      }
    }
  }

  static void finishesLate() throws Exception {
    Layout layout = SENDERS.layout(Placement.shard(1));
    try (Job job = Job.fromEnvironment("trainer", OPTIONS, SOON);
        Link link = job.connect("policy", Role.SOURCE, SOON);
        Tensor own =
            Tensor.allocate(DType.F32, layout.localShape(SHAPE, job.communicator().rank()));
        LinkTransfer transfer =
            link.transferBuilder().add("t", SHAPE, own, layout).register(SOON)) {
      own.fill(1);
      transfer.send(1, SOON);
      Thread.sleep(2000); // the receivers stop
      long startNs = System.nanoTime();
      System.out.println(
          catchThrowableOfType(
              AbortedException.class, () -> transfer.finish(Duration.ofSeconds(1))));
      assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isLessThan(Duration.ofSeconds(20));
    }
  }

  private static long most(Communicator comm, long own) {
    try (Tensor tensor = Tensor.allocate(DType.I64, 1)) {
      tensor.fill(own);
      comm.allReduce(tensor, ReduceOp.MAX);
      long[] most = new long[1];
      tensor.copyTo(most);
      return most[0];
    }
  }

  static void receives() throws Exception {
    Layout layout = SENDERS.layout(Placement.shard(0));
    try (Job job = Job.fromEnvironment("inference", OPTIONS, SOON);
        Link link = job.connect("policy", Role.TARGET, SOON);
        Tensor own =
            Tensor.allocate(DType.F32, layout.localShape(SHAPE, job.communicator().rank()));
        LinkTransfer transfer =
            link.transferBuilder().into("t", SHAPE, own, layout).register(SOON)) {
      for (int received = 1; ; received++) {
        long version = transfer.receive(SOON);
        requireAll(transfer.tensor("t"), version);
        System.out.println("received " + received);
      }
    }
  }
}
