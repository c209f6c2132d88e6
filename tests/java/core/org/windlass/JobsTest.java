// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.StringJoiner;
import java.util.UUID;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.error.AbortedException;
import org.windlass.error.PeerLostException;
import org.windlass.job.Follower;
import org.windlass.job.Followers;
import org.windlass.job.Job;
import org.windlass.job.Role;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.testing.Processes;
import org.windlass.testing.RandomSeeds;

/**
 * Jobs whose ranks are processes: they connect, one is killed and started again, the other goes on.
 * Methods without an annotation are what the ranks run.
 */
@Timeout(300)
class JobsTest {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final long ROWS = 64;
  private static final long COLUMNS = 1024;
  private static final long[] SHAPE = {ROWS, COLUMNS};

  /** The version after which jobs end. */
  private static final long LAST = Long.MAX_VALUE / 2;

  @TempDir Path folder;
  private final String rendezvous = "test-" + UUID.randomUUID();

  /** A job of {@code size} processes that run {@code body}. */
  private final class Launched implements AutoCloseable {
    private final Processes processes;
    private final List<Processes.Rank> ranks = new ArrayList<>();

    Launched(String name, int size, String body) throws Exception {
      this(name, size, body, "TEST_NONE", "");
    }

    /** Its processes have one more variable. */
    Launched(String name, int size, String body, String variable, String value) throws Exception {
      processes = new Processes(JobsTest.class, size, folder).with(variable, value);
      for (int rank = 0; rank < size; rank++) {
        Map<String, String> variables =
            Map.of(
                "WINDLASS_RANK", String.valueOf(rank),
                "WINDLASS_WORLD_SIZE", String.valueOf(size),
                "WINDLASS_JOB", name + "-" + rendezvous,
                "WINDLASS_LINK_RENDEZVOUS", rendezvous,
                "XDG_RUNTIME_DIR", folder.toString(),
                "TEST_JOB", name,
                "TEST_END", endFile().toString());
        ranks.add(processes.start(rank, body, variables));
      }
    }

    Processes.Rank rank(int rank) {
      return ranks.get(rank);
    }

    Processes.Rank last() {
      return ranks.get(ranks.size() - 1);
    }

    void end() throws InterruptedException {
      for (Processes.Rank rank : ranks) {
        rank.ended();
      }
    }

    void kill() {
      ranks.forEach(Processes.Rank::kill);
    }

    @Override
    public void close() {
      processes.close();
    }
  }

  private static Job job() {
    return Job.fromEnvironment(
        System.getenv("TEST_JOB"), CommunicatorOptions.defaults().withDeadline(SOON), SOON);
  }

  private static Layout layout(Job job) {
    return DeviceMesh.of(job.communicator().size()).layout(Placement.shard(0));
  }

  /** The elements of a part in a version: each tells both its place and the version. */
  private static float[] part(Layout layout, int rank, long version) {
    var rows = layout.localRegion(SHAPE, rank).intervals(0).get(0);
    float[] values = new float[(int) ((rows.end() - rows.start()) * COLUMNS)];
    for (int i = 0; i < values.length; i++) {
      values[i] = (rows.start() * COLUMNS + i) % 1024 + 1024f * (version % 4096);
    }
    return values;
  }

  private static LinkTransfer bound(Link link, Tensor own, Layout layout) {
    var builder = link.transferBuilder();
    return (link.sends()
            ? builder.add("w", SHAPE, own, layout)
            : builder.into("w", SHAPE, own, layout))
        .register(SOON);
  }

  private static Tensor allocate(Layout layout, int rank) {
    return Tensor.allocate(DType.F32, layout.localShape(SHAPE, rank));
  }

  /** Receives what comes until {@code until} says so; after a failure it connects again. */
  static void inference() {
    try (Job job = job()) {
      System.out.println(job + " is there");
      Layout layout = layout(job);
      int rank = job.communicator().rank();
      long last = 0;
      for (int time = 1; last < LAST; time++) {
        try (Link link = job.connect("policy", Role.TARGET, SOON)) {
          Tensor own = allocate(layout, rank);
          try (var transfer = bound(link, own, layout)) {
            System.out.println("connected " + time);
            while (last < LAST) {
              long version = transfer.receive(SOON);
              assertThat(version).isGreaterThan(last);
              last = version;
              float[] found = new float[(int) own.numel()];
              transfer.tensor("w").copyTo(found);
              assertThat(found).isEqualTo(part(layout, rank, version));
              System.out.println("has " + version);
            }
          }
        } catch (PeerLostException | AbortedException e) {
          System.out.println("lost: " + e.faultyRanks() + " " + e.getMessage());
        }
      }
    }
  }

  /** Sends to the one that follows until it is told to end; after a failure it connects again. */
  static void trainer() throws Exception {
    try (Job job = job()) {
      System.out.println(job + " is there");
      Layout layout = layout(job);
      int rank = job.communicator().rank();
      boolean isOver = false;
      for (int time = 1; !isOver; time++) {
        try (Link link = job.connect("policy", Role.SOURCE, SOON)) {
          Tensor own = allocate(layout, rank);
          try (var transfer = bound(link, own, layout)) {
            System.out.println("connected " + time);
            while (!isOver) {
              long version = nextVersion(job);
              own.copyFrom(part(layout, rank, version));
              transfer.send(version, SOON);
              System.out.println("sent " + version);
              isOver = version == LAST;
            }
          }
        } catch (PeerLostException | AbortedException e) {
          System.out.println("lost: " + e.faultyRanks() + " " + e.getMessage());
        }
      }
    }
  }

  /** The same on all ranks, and beyond those of earlier starts of the job. */
  private static long nextVersion(Job job) throws InterruptedException {
    Thread.sleep(20); // which leaves the cores to others
    Tensor version = Tensor.allocate(DType.I64, 1);
    boolean isToEnd = Files.exists(Path.of(System.getenv("TEST_END")));
    version.setLong(isToEnd ? LAST : System.currentTimeMillis(), 0);
    job.communicator().broadcast(version, version, 0);
    return version.getLong(0);
  }

  /**
   * Both go on, whichever was there first and has the store, and whichever is killed. One of the
   * two has two ranks. Where the job of inference is first and lives on: in the long form.
   */
  @ParameterizedTest
  @CsvSource({
    "trainer, inference, trainer",
    "trainer, trainer, inference",
    "inference, inference, inference",
    "inference, trainer, trainer"
  })
  void aJobThatIsKilledComesBack(String first, String killed, String larger) throws Exception {
    assumeTrue(
        first.equals("trainer")
            || killed.equals("inference")
            || Boolean.getBoolean("windlass.long"),
        "-Dwindlass.long=true runs it");
    String second = first.equals("trainer") ? "inference" : "trainer";
    Map<String, Integer> sizes = new HashMap<>(Map.of("trainer", 1, "inference", 1));
    sizes.put(larger, 2);
    Map<String, Launched> jobs = new HashMap<>();
    try {
      jobs.put(first, new Launched(first, sizes.get(first), first));
      jobs.get(first).rank(0).await("is there"); // so that it has the store
      jobs.put(second, new Launched(second, sizes.get(second), second));
      jobs.get("inference").last().await("has ");
      jobs.get(killed).kill();
      jobs.get(killed).close();
      Launched lives = jobs.get(killed.equals(first) ? second : first);
      lives.rank(0).await("lost: ");
      jobs.put(killed, new Launched(killed, sizes.get(killed), killed));
      lives.rank(0).await("connected 2");
      lives.last().await("connected 2");
      jobs.get("inference").last().await("has ");
      Files.createFile(endFile());
      for (Launched job : jobs.values()) {
        job.end();
      }
    } finally {
      jobs.values().forEach(Launched::close);
    }
    requireNothingLeft();
  }

  /**
   * All ranks that are left of both jobs are told of the one rank that is lost. Only where the
   * system property {@code windlass.long} is true.
   */
  @ParameterizedTest
  @CsvSource({"trainer, 0, 0", "trainer, 1, 1", "inference, 0, 2", "inference, 1, 3"})
  void aRankThatIsKilledIsNamedInBothJobs(String job, int rank, int linked) throws Exception {
    assumeTrue(Boolean.getBoolean("windlass.long"), "-Dwindlass.long=true runs it");
    try (Launched trainer = new Launched("trainer", 2, "trainer");
        Launched inference = new Launched("inference", 2, "inference")) {
      inference.rank(1).await("has ");
      Launched killed = job.equals("trainer") ? trainer : inference;
      killed.rank(rank).kill();
      for (Launched each : List.of(trainer, inference)) {
        for (int r = 0; r < 2; r++) {
          if (each != killed || r != rank) {
            each.rank(r).await("lost: ");
            String said = each.rank(r).said();
            assertThat(said.substring(said.indexOf("lost: "))).startsWith("lost: [" + linked + "]");
          }
        }
      }
    }
  }

  /** A job is killed at any moment, of a connect, a registration or a move, and started again. */
  @RandomSeeds(value = 1, inLong = 10)
  void jobsThatAreKilledAtAnyMomentConnectAgain(long seed) throws Exception {
    Random random = new Random(seed);
    Files.deleteIfExists(endFile());
    List<String> names = List.of("trainer", "inference");
    Map<String, Launched> jobs = new HashMap<>();
    try {
      for (String name : names) {
        jobs.put(name, new Launched(name, 1 + random.nextInt(2), name));
      }
      for (int round = 0; round < (Boolean.getBoolean("windlass.long") ? 5 : 3); round++) {
        Thread.sleep(random.nextInt(2000));
        String killed = names.get(random.nextInt(2));
        Launched job = jobs.get(killed);
        job.rank(random.nextInt(job.ranks.size())).kill();
        Thread.sleep(random.nextInt(50));
        job.close();
        jobs.put(killed, new Launched(killed, 1 + random.nextInt(2), killed));
      }
      jobs.get("inference").rank(0).await("has ");
      Files.createFile(endFile());
      for (Launched job : jobs.values()) {
        job.end();
      }
    } finally {
      jobs.values().forEach(Launched::close);
    }
  }

  private Path endFile() {
    return folder.resolve("end");
  }

  /** Of the rendezvous; the file that jobs lock stays, and is empty. */
  private void requireNothingLeft() throws Exception {
    try (var files = Files.list(folder)) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .filteredOn(name -> name.startsWith("windlass-") && !name.endsWith(".lock"))
          .isEmpty();
    }
  }

  static void follows() {
    try (Job job = job()) {
      Layout layout = layout(job);
      int rank = job.communicator().rank();
      try (Link link = job.connect("policy", Role.TARGET, SOON)) {
        Tensor own = allocate(layout, rank);
        try (var transfer = bound(link, own, layout)) {
          long version = 0;
          while (version < LAST) {
            version = transfer.receive(SOON);
            System.out.println("has " + version);
          }
        }
      }
    }
  }

  /** A follower that is stopped in the middle holds nobody beyond the deadline; it is let go of. */
  @Test
  void aFollowerThatHangsCostsOthersNothing() throws Exception {
    try (Launched trainer = new Launched("trainer", 2, "leads", "TEST_LIMIT", "PT3S")) {
      trainer.rank(0).await("leads");
      try (Launched good = new Launched("good", 1, "follows");
          Launched bad = new Launched("bad", 2, "follows")) {
        trainer.rank(0).await("good: version 3, bad: version 3");
        bad.rank(1).await("has 3");
        bad.rank(1).signal("STOP");
        trainer.rank(0).await("bad: lost");
        Files.createFile(endFile());
        trainer.end();
        good.end(); // while the other one is stopped
        bad.rank(1).signal("CONT");
      }
    }
  }

  static void waits() throws Exception {
    try (Job job = job()) {
      System.out.println(job + " is there");
      while (!Files.exists(Path.of(System.getenv("TEST_END")))) {
        Thread.sleep(50);
      }
    }
  }

  /**
   * The process that has the store is stopped: those that have connected go on as if it were there.
   */
  @Test
  void aStoreThatHangsCostsThoseWhoHaveConnectedNothing() throws Exception {
    try (Launched owner = new Launched("owner", 1, "waits")) {
      owner.rank(0).await("is there");
      try (Launched trainer = new Launched("trainer", 2, "leads");
          Launched one = new Launched("one", 1, "follows");
          Launched other = new Launched("other", 2, "follows")) {
        other.rank(1).await("has 3");
        one.rank(0).await("has 3");
        owner.rank(0).signal("STOP");
        trainer.rank(0).await("new followers can't be found at the moment");
        for (Launched follower : List.of(one, other)) {
          // Versions that are sent from now on. A send that waited for the store would last SOON.
          long version = lastVersion(follower.last().said());
          follower.last().await("has " + (version + 5));
        }
        Files.createFile(endFile());
        one.end();
        other.end();
        trainer.end(); // while the owner is stopped
        assertThat(trainer.rank(0).said()).doesNotContain(": lost");
        owner.rank(0).signal("CONT");
      }
      owner.end();
    }
  }

  private static long lastVersion(String said) {
    return Pattern.compile("^has (\\d+)$", Pattern.MULTILINE)
        .matcher(said)
        .results()
        .mapToLong(found -> Long.parseLong(found.group(1)))
        .max()
        .orElseThrow();
  }

  static void leads() throws Exception {
    Duration limit = Duration.parse(System.getenv().getOrDefault("TEST_LIMIT", SOON.toString()));
    try (Job job = job()) {
      Layout layout = layout(job);
      int rank = job.communicator().rank();
      Tensor own = allocate(layout, rank);
      System.out.println("leads");
      try (Followers followers =
          job.followers("policy", builder -> builder.add("w", SHAPE, own, layout))) {
        followers.await(2, SOON);
        boolean isOver = false;
        for (long version = 1; !isOver; version++) {
          isOver = nextVersion(job) == LAST;
          long now = isOver ? LAST : version;
          own.copyFrom(part(layout, rank, now));
          List<Follower> stand = followers.send(now, limit);
          StringJoiner line = new StringJoiner(", ");
          stand.stream()
              .sorted(Comparator.comparing(Follower::job).reversed())
              .forEach(each -> line.add(each.toString()));
          System.out.println(line);
        }
      }
    }
  }
}
