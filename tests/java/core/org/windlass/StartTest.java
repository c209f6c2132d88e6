// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.store.Token;
import org.windlass.launch.LaunchStore;
import org.windlass.testing.NothingLeft;
import org.windlass.testing.Processes;
import org.windlass.testing.RandomSeeds;

/**
 * Starts from launchers' variables, here those of threads of one JVM: what each rank is told where
 * one fails, and that nothing is left then.
 */
@Timeout(120)
@ExtendWith(NothingLeft.class)
class StartTest {
  /** Beyond the time that a test may take: whoever is given it ends because others do. */
  private static final Duration LONG = Duration.ofMinutes(5);

  private static final Duration SHORT = Duration.ofMillis(1500);

  private final String address = Processes.loopback();
  private final String token = Token.random().digits();

  /** A rank's variables and what it asks for. */
  private final class Rank {
    private final Map<String, String> variables = new HashMap<>();
    private CommunicatorOptions options = CommunicatorOptions.defaults();
    private Duration deadline = SHORT;
    private int ranks = 1;

    Rank(int rank, int size) {
      variables.put("WINDLASS_RANK", String.valueOf(rank));
      variables.put("WINDLASS_WORLD_SIZE", String.valueOf(size));
      variables.put("WINDLASS_RENDEZVOUS", address);
      variables.put("WINDLASS_TOKEN", token);
    }

    Rank with(String name, String value) {
      variables.put(name, value);
      return this;
    }

    Rank without(String name) {
      variables.remove(name);
      return this;
    }

    Rank at(LaunchStore store) {
      variables.putAll(store.variables());
      return this;
    }

    Rank with(CommunicatorOptions other) {
      options = other;
      return this;
    }

    /** Of its process. */
    Rank bringing(int other) {
      ranks = other;
      return this;
    }

    Rank within(Duration other) {
      deadline = other;
      return this;
    }

    Communicator join() {
      return new EnvironmentStart(variables, ranks, options, deadline).join();
    }

    /** What its start, which fails, throws. */
    WindlassException failure() {
      try (Communicator communicator = join()) {
        throw new AssertionError("has started: " + communicator);
      } catch (WindlassException e) {
        return e;
      }
    }
  }

  private static <T> List<T> all(List<Callable<T>> calls) throws Exception {
    List<FutureTask<T>> tasks = new ArrayList<>();
    for (Callable<T> call : calls) {
      tasks.add(new FutureTask<>(call));
      new Thread(tasks.get(tasks.size() - 1)).start();
    }
    List<T> results = new ArrayList<>();
    for (FutureTask<T> task : tasks) {
      results.add(task.get(100, TimeUnit.SECONDS));
    }
    return results;
  }

  private static List<WindlassException> failures(Rank... ranks) throws Exception {
    List<Callable<WindlassException>> calls = new ArrayList<>();
    for (Rank rank : ranks) {
      calls.add(rank::failure);
    }
    return all(calls);
  }

  private static void assertMissing(WindlassException failure, Integer... ranks) {
    assertThat(failure).isInstanceOf(DeadlineExceededException.class);
    assertThat(failure.faultyRanks()).as(failure.getMessage()).containsExactly(ranks);
  }

  private void assertStarts(int size) throws Exception {
    assertStarts(size, rank -> rank);
  }

  private void assertStarts(int size, UnaryOperator<Rank> with) throws Exception {
    List<Callable<Integer>> calls = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      Rank rank = with.apply(new Rank(i, size).within(LONG));
      calls.add(
          () -> {
            try (Communicator communicator = rank.join()) {
              communicator.barrier();
              return communicator.rank();
            }
          });
    }
    assertThat(all(calls)).hasSize(size).doesNotHaveDuplicates();
  }

  @Test
  void startsFollowOneAnotherAtOnePlace() throws Exception {
    for (int i = 0; i < 16; i++) {
      assertStarts(2);
    }
    assertStarts(5);
    assertStarts(1);
  }

  @Test
  void aRankThatNeverComesIsNamedOnAllOthers() throws Exception {
    // Those of the longer deadline are told what the first one found.
    List<WindlassException> failures =
        failures(new Rank(0, 4), new Rank(1, 4).within(LONG), new Rank(3, 4).within(LONG));
    for (WindlassException failure : failures) {
      assertMissing(failure, 2);
      assertThat(failure)
          .hasMessage(
              "rank 2 of 4 had not joined at " + address + " when the deadline passed;"
                  + " see why they did not start, or give more time");
    }
    assertStarts(4);
  }

  @Test
  void ranksStartAtTheStoreOfTheirLauncherAsOftenAsTheyLike() throws Exception {
    try (LaunchStore store = LaunchStore.open(Map.of("WINDLASS_TOKEN", token))) {
      for (int i = 0; i < 4; i++) {
        assertStarts(3, rank -> rank.at(store));
      }
      for (WindlassException failure :
          failures(new Rank(0, 3).at(store), new Rank(2, 3).at(store))) {
        assertMissing(failure, 1);
      }
      assertThat(failures(new Rank(1, 2).at(store)).get(0))
          .hasMessageStartingWith("rank 0 of 2 had not joined at ");
      assertStarts(2, rank -> rank.at(store));
      List<WindlassException> twice =
          failures(new Rank(0, 2).at(store), new Rank(0, 2).at(store));
      assertThat(twice).anyMatch(MismatchException.class::isInstance);
    }
  }

  @Test
  void theLossOfTheLaunchersStoreIsNamed() throws Exception {
    LaunchStore store = LaunchStore.open(Map.of("WINDLASS_TOKEN", token));
    List<Callable<WindlassException>> calls = new ArrayList<>();
    for (int rank : new int[] {0, 2}) {
      calls.add(new Rank(rank, 3).at(store).within(LONG)::failure);
    }
    calls.add(
        () -> {
          Thread.sleep(SHORT.toMillis() / 3);
          store.close();
          return null;
        });
    for (WindlassException failure : all(calls).subList(0, 2)) {
      assertThat(failure)
          .isInstanceOf(PeerLostException.class)
          .hasMessageMatching(
              "waiting for the launcher, which has the rendezvous store: the store at \\S+"
                  + " was lost: .*");
    }
    assertThat(failures(new Rank(1, 3).at(store).within(LONG)).get(0))
        .isInstanceOf(PeerLostException.class)
        .hasMessageStartingWith("waiting for the launcher, which has the rendezvous store")
        .hasMessageContaining("its owner has ended");
  }

  @Test
  void theFirstDeadlineThatPassesCountsForAll() throws Exception {
    List<WindlassException> failures =
        failures(new Rank(0, 3).within(SHORT.multipliedBy(2)), new Rank(1, 3));
    assertThat(failures.get(0)).hasMessage(failures.get(1).getMessage());
    assertMissing(failures.get(0), 2);
  }

  @Test
  void withoutRankZeroTheOthersNameIt() throws Exception {
    for (WindlassException failure : failures(new Rank(1, 3), new Rank(2, 3))) {
      assertMissing(failure, 0);
      assertThat(failure)
          .hasMessageStartingWith("waiting for rank 0, whose process has the rendezvous store")
          .hasMessageContaining("no store there after");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"127.0.0.1", "localhost"})
  void loopbackIsSaidToBeAnotherOnEachHost(String host) throws Exception {
    String place = host + address.substring(address.lastIndexOf(':'));
    assertThat(new Rank(1, 2).with("WINDLASS_RENDEZVOUS", place).failure())
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("no store there after")
        .hasMessageContaining("That address is another in each host");
  }

  @Test
  void anAddressOfAnotherHostIsSaidToBeOne() throws Exception {
    assertThat(new Rank(0, 2).with("WINDLASS_RENDEZVOUS", "192.0.2.1:7000").failure())
        .isInstanceOf(ResourceException.class)
        .hasMessageStartingWith("rank 0: no store can be opened at 192.0.2.1:7000")
        .hasMessageContaining("start rank 0 on the host that WINDLASS_RENDEZVOUS names")
        .hasMessageNotContaining("may listen there");
  }

  @Test
  void aWrongTokenIsRefusedAndHarmsNobody() throws Exception {
    Rank wrong = new Rank(1, 2).with("WINDLASS_TOKEN", Token.random().digits());
    List<WindlassException> failures = failures(new Rank(0, 2), wrong);
    assertMissing(failures.get(0), 1);
    assertThat(failures.get(1))
        .isInstanceOf(ResourceException.class)
        .hasMessageContaining("as rank 1 of 2")
        .hasMessageContaining("the store holds another token than this member");
    assertStarts(2);
  }

  @Test
  void twoProcessesOfOneRankAreTold() throws Exception {
    List<WindlassException> failures =
        failures(new Rank(0, 3), new Rank(1, 3), new Rank(1, 3));
    assertMissing(failures.get(0), 2);
    WindlassException refused = failures.get(failures.get(1) instanceof MismatchException ? 1 : 2);
    assertThat(refused)
        .isInstanceOf(MismatchException.class)
        .hasMessageContaining("is connected already, from 127.0.0.1:")
        .hasMessageContaining("two members can't have the same rank");
  }

  /**
   * A rank joins after a moment, and stays until one is refused.
   *
   * @return its number, or why it was refused
   */
  private static Callable<Object> joining(Rank rank, long afterMs, CountDownLatch refused) {
    return () -> {
      Thread.sleep(afterMs);
      try (Communicator communicator = rank.within(LONG).join()) {
        communicator.barrier();
        assertThat(refused.await(90, TimeUnit.SECONDS)).isTrue();
        return communicator.rank();
      } catch (WindlassException e) {
        refused.countDown();
        return e;
      }
    };
  }

  @RandomSeeds(value = 10, inLong = 50)
  @Timeout(300)
  void aStrangerAtAnyMomentOfAStartHarmsNobody(long seed) throws Exception {
    Random random = new Random(seed);
    CountDownLatch refused = new CountDownLatch(1);
    List<Callable<Object>> calls = new ArrayList<>();
    for (int rank = 0; rank < 3; rank++) {
      calls.add(joining(new Rank(rank, 3), random.nextInt(20), refused));
    }
    Rank stranger = new Rank(1, 3).with("WINDLASS_TOKEN", Token.random().digits());
    calls.add(joining(stranger, random.nextInt(20), refused));
    List<Object> results = all(calls);
    assertThat(results.subList(0, 3)).containsExactly(0, 1, 2);
    assertThat(results.get(3))
        .isInstanceOf(ResourceException.class)
        .asString()
        .contains("the store holds another token than this member");
  }

  /** Two come as rank 1; the last rank comes once one of them is refused. */
  @RandomSeeds(value = 10, inLong = 50)
  @Timeout(300)
  void aRankThatJoinsTwiceAtAnyMomentOfAStartHarmsNobody(long seed) throws Exception {
    Random random = new Random(seed);
    CountDownLatch refused = new CountDownLatch(1);
    List<Callable<Object>> calls = new ArrayList<>();
    for (int rank : new int[] {0, 1, 1}) {
      calls.add(joining(new Rank(rank, 3), random.nextInt(20), refused));
    }
    calls.add(
        () -> {
          assertThat(refused.await(90, TimeUnit.SECONDS)).isTrue();
          return joining(new Rank(2, 3), 0, refused).call();
        });
    List<Object> results = all(calls);
    assertThat(results).contains(0, 1, 2);
    assertThat(results)
        .filteredOn(MismatchException.class::isInstance)
        .singleElement()
        .asString()
        .contains("two members can't have the same rank");
  }

  @Test
  void twoProcessesOfRankZeroAreTold() throws Exception {
    List<WindlassException> failures = failures(new Rank(0, 2), new Rank(0, 2));
    WindlassException refused = failures.get(failures.get(0) instanceof ResourceException ? 0 : 1);
    assertThat(refused)
        .isInstanceOf(ResourceException.class)
        .hasMessageStartingWith("rank 0: no store can be opened at " + address)
        .hasMessageContaining("another process that has rank 0 too");
    assertMissing(failures.get(refused == failures.get(0) ? 1 : 0), 1);
  }

  @Test
  void differentOptionsAreToldAlikeOnAllRanks() throws Exception {
    CommunicatorOptions other = CommunicatorOptions.defaults().withBlocks(3);
    for (int round = 0; round < 8; round++) {
      List<WindlassException> failures =
          failures(
              new Rank(0, 3).within(LONG),
              new Rank(1, 3).within(LONG),
              new Rank(2, 3).within(LONG).with(other));
      for (WindlassException failure : failures) {
        assertThat(failure)
            .isInstanceOf(MismatchException.class)
            .hasMessage(
                "ranks 0 and 2 were given blocks=0 and blocks=3; give all ranks the same options");
        assertThat(failure.faultyRanks()).containsExactly(0, 2);
      }
    }
    assertStarts(3);
  }

  @Test
  void differentNumbersOfRanksAreToldToAllAtOnce(@TempDir Path folder) throws Exception {
    assertTold("one of 2 ranks, rank 1 as one of 3;", new Rank(0, 2), new Rank(1, 3));
    assertTold(
        "one of 4 ranks, rank 1 as one of 2;", new Rank(0, 2).bringing(2), new Rank(1, 2));
    assertTold("one of 2 ranks, rank 3 as one of 4;", byFile(0, 2, folder), byFile(3, 4, folder));
    try (LaunchStore store = LaunchStore.open(Map.of("WINDLASS_TOKEN", token))) {
      assertTold(
          "one of 3 ranks, rank 1 as one of 2;",
          new Rank(0, 3).at(store),
          new Rank(1, 2).at(store));
    }
  }

  private Rank byFile(int rank, int size, Path folder) {
    return new Rank(rank, size)
        .without("WINDLASS_RENDEZVOUS")
        .without("WINDLASS_TOKEN")
        .with("WINDLASS_JOB", "counts")
        .with("XDG_RUNTIME_DIR", folder.toString());
  }

  private static void assertTold(String said, Rank first, Rank second) throws Exception {
    for (WindlassException failure : failures(first.within(LONG), second.within(LONG))) {
      assertThat(failure)
          .isInstanceOf(MismatchException.class)
          .hasMessageStartingWith("rank 0 was started as " + said);
    }
  }

  @Test
  void wrongVariablesAreRefusedAtOnce() {
    assertThatThrownBy(() -> new EnvironmentStart(Map.of(), 1, CommunicatorOptions.defaults(), LONG))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("no launcher has set its variables")
        .hasMessageContaining("windlass run, Open MPI's mpirun, torchrun or srun");
    Map<String, String> mpich = Map.of("PMI_RANK", "0", "PMI_SIZE", "2");
    assertThatThrownBy(() -> new EnvironmentStart(mpich, 1, CommunicatorOptions.defaults(), LONG))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("MPICH's mpiexec")
        .hasMessageContaining("WINDLASS_RANK to $PMI_RANK");
    for (int ranks : new int[] {0, -1, 2049}) {
      assertThatThrownBy(() -> new Rank(0, 2).bringing(ranks).join())
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("ranks is " + ranks + "; each of 2 processes has 1 to 2048");
    }
    assertThat(new Rank(1, 2).without("WINDLASS_TOKEN").failure())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("there is no token")
        .hasMessageContaining("WINDLASS_TOKEN_FILE");
    assertThat(
            new Rank(1, 2)
                .without("WINDLASS_TOKEN")
                .with("WINDLASS_TOKEN_FILE", "/nonexistent/token")
                .failure())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("WINDLASS_TOKEN_FILE: /nonexistent/token: cannot be read: No such file");
    assertThat(new Rank(0, 2).without("WINDLASS_RENDEZVOUS").failure())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("no variable names their rendezvous");
  }

  @Test
  void aNameThatNobodyHasIsMissedAtTheDeadline() throws Exception {
    for (int rank = 0; rank < 2; rank++) {
      assertThat(new Rank(rank, 2).with("WINDLASS_RENDEZVOUS", "nowhere.invalid:7000").failure())
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("the host nowhere.invalid has no known address");
    }
  }

  @Test
  void aDeadlineThatIsTooShortIsSaidOnEachRank() throws Exception {
    for (int rank = 0; rank < 2; rank++) {
      Duration none = Duration.ZERO;
      assertThat(new Rank(rank, 2).within(none).failure())
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("deadline is 0 s;");
    }
    Duration moment = Duration.ofNanos(1000);
    for (WindlassException failure :
        failures(new Rank(0, 2).within(moment), new Rank(1, 2).within(moment))) {
      assertThat(failure).isInstanceOf(DeadlineExceededException.class);
    }
  }

  @Test
  void anInterruptedRankLeavesAndTheOthersNameIt() throws Exception {
    List<Callable<WindlassException>> calls = new ArrayList<>();
    calls.add(new Rank(0, 3)::failure);
    calls.add(
        () -> {
          Thread own = Thread.currentThread();
          Thread interrupter =
              new Thread(
                  () -> {
                    try {
                      Thread.sleep(SHORT.toMillis() / 3);
                    } catch (InterruptedException e) {
                      return;
                    }
                    own.interrupt();
                  });
          interrupter.start();
          return new Rank(1, 3).failure();
        });
    List<WindlassException> failures = all(calls);
    assertMissing(failures.get(0), 1, 2);
    assertThat(failures.get(1))
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("interrupted");
  }
}
