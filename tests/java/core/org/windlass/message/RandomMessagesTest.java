// SPDX-License-Identifier: Apache-2.0
package org.windlass.message;

import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.error.ErrorCode;
import org.windlass.error.WindlassException;
import org.windlass.message.MessageHistory.OfRank;
import org.windlass.message.MessageHistory.Posted;
import org.windlass.message.MessageHistory.Sent;
import org.windlass.message.MessageProgram.Kind;
import org.windlass.message.MessageProgram.Thrown;
import org.windlass.testing.Processes;
import org.windlass.testing.RandomSeeds;

/**
 * Random programs of messages with random faults. Every rank ends in time, what it got is what
 * {@link MessageHistory} allows, and its failure has the code of the fault and names a rank that
 * failed.
 */
class RandomMessagesTest {
  private static final String PROGRAM = "WINDLASS_TEST_PROGRAM";
  private static final Kind[] OF_THREADS =
      EnumSet.complementOf(EnumSet.of(Kind.LEAVE)).toArray(Kind[]::new);

  @TempDir private Path folder;

  @RandomSeeds(value = 60, inLong = 10_000, seconds = 2)
  void ranksThatAreThreads(long seed) throws Exception {
    MessageProgram program =
        MessageProgram.random(seed, 2 + new Random(seed).nextInt(4), OF_THREADS);
    List<OfRank> ranks = new ArrayList<>();
    for (int rank = 0; rank < program.ranks(); rank++) {
      ranks.add(new OfRank(rank));
    }
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              runThreads(program, ranks);
              return null;
            });
    Thread thread = new Thread(task, "random messages");
    thread.setDaemon(true);
    thread.start();
    task.get(60, TimeUnit.SECONDS);
    check(program, ranks);
  }

  private static void runThreads(MessageProgram program, List<OfRank> ranks) {
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(program.deadline());
    try (LocalGroup group = LocalGroup.of(program.ranks(), options)) {
      group.run(comm -> program.run(comm, ranks.get(comm.rank()), () -> {}));
    } catch (WindlassException | Thrown e) {
      // Each rank's history has its failure.
    }
  }

  @RandomSeeds(value = 3, inLong = 200)
  void ranksThatAreProcesses(long seed) throws Exception {
    int count = 2 + new Random(seed).nextInt(2);
    MessageProgram program = program(seed, count);
    try (Processes processes =
        new Processes(RandomMessagesTest.class, count, folder)
            .with(PROGRAM, seed + " " + count)) {
      List<Processes.Rank> started = processes.start("play");
      Processes.Rank faulty = started.get(program.fault().rank());
      boolean leaves = program.fault().kind() == Kind.LEAVE;
      if (leaves) {
        faulty.await("it leaves");
        if (program.isStopped()) {
          faulty.signal("STOP");
        } else {
          faulty.kill();
        }
      }
      List<OfRank> ranks = new ArrayList<>();
      for (Processes.Rank each : started) {
        ranks.add(history(leaves && each == faulty ? each.said() : each.ended()));
      }
      check(program, ranks);
    }
  }

  /** Half of them leave, since threads cannot. */
  private static MessageProgram program(long seed, int ranks) {
    Kind[] kinds =
        Stream.concat(Arrays.stream(OF_THREADS), Arrays.stream(OF_THREADS).map(k -> Kind.LEAVE))
            .toArray(Kind[]::new);
    return MessageProgram.random(seed, ranks, kinds);
  }

  /** What each process runs. */
  static void play() {
    String[] words = System.getenv(PROGRAM).split(" ");
    MessageProgram program = program(Long.parseLong(words[0]), Integer.parseInt(words[1]));
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(program.deadline());
    try (Communicator comm = Communicator.fromEnvironment(options, ofSeconds(30))) {
      OfRank own = new OfRank(comm.rank());
      try {
        program.run(
            comm,
            own,
            () -> {
              print(own);
              System.out.println("it leaves");
            });
      } catch (WindlassException | Thrown e) {
        comm.abort("a rank failed");
      }
      print(own);
    } catch (WindlassException e) {
      System.out.println("the close fails too: " + e.getMessage());
    }
  }

  private static void print(OfRank own) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream objects = new ObjectOutputStream(bytes)) {
      objects.writeObject(own);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    System.out.println("history " + Base64.getEncoder().encodeToString(bytes.toByteArray()));
  }

  private static OfRank history(String said) throws Exception {
    String line =
        said.lines()
            .filter(each -> each.startsWith("history "))
            .findFirst()
            .orElseThrow(() -> new AssertionError(said));
    byte[] bytes = Base64.getDecoder().decode(line.split(" ")[1]);
    try (ObjectInputStream objects = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
      return (OfRank) objects.readObject();
    }
  }

  private static void check(MessageProgram program, List<OfRank> ranks) {
    MessageProgram.Fault fault = program.fault();
    boolean isWhole = ranks.stream().allMatch(each -> each.failure == null);
    try {
      for (OfRank each : ranks) {
        boolean leaves = fault.kind() == Kind.LEAVE && each.rank == fault.rank();
        if (!leaves && each.failure != null) {
          checkFailure(fault, each, ranks);
        }
        // Nobody passes the last barrier without the rank that failed.
        boolean fails = leaves || each.failure != null;
        assertThat(fails || !fault.kind().endsAll()).as("rank %d fails", each.rank).isTrue();
      }
      new MessageHistory(ranks).check(isWhole && fault.kind() != Kind.LEAVE);
    } catch (AssertionError e) {
      throw new AssertionError(program + ": " + e.getMessage(), e);
    }
  }

  private static void checkFailure(
      MessageProgram.Fault fault, OfRank own, List<OfRank> ranks) {
    if (own.failure instanceof Thrown && own.rank == fault.rank()) {
      return;
    }
    if (fault.kind().isHarmless() || !(own.failure instanceof WindlassException)) {
      throw new AssertionError("rank " + own.rank + " ended with " + own.failure, own.failure);
    }
    WindlassException failure = (WindlassException) own.failure;
    Set<ErrorCode> codes =
        switch (fault.kind()) {
          case STALL -> Set.of(ErrorCode.DEADLINE_EXCEEDED);
          case MISTAKE -> Set.of(ErrorCode.MISMATCH);
          case LEAVE -> Set.of(ErrorCode.DEADLINE_EXCEEDED, ErrorCode.PEER_LOST);
          case CLOSE ->
              Set.of(own.rank == fault.rank() ? ErrorCode.CLOSED : ErrorCode.ABORTED);
          default -> Set.of(ErrorCode.ABORTED);
        };
    assertThat(codes).as("rank %d: %s", own.rank, failure).contains(failure.code());
    // A receive from any rank cannot tell who was to send.
    boolean names =
        own.rank == fault.rank()
            || (own.named.isEmpty() && failure.getMessage().contains(" from any rank, "))
            || own.named.stream()
                .anyMatch(each -> each == fault.rank() || ranks.get(each).failure != null);
    assertThat(names).as("rank %d names who failed: %s", own.rank, failure).isTrue();
  }

  /** The oracle sees what no library may do. */
  @Test
  void theOracleRefusesWhatIsNotAllowed() {
    assertThat(refused(0, 1)).isNull();
    assertThat(refused(1, 0)).contains("before");
    assertThat(refused(0, 0)).contains("a second time");
    assertThat(refused(0, 7)).contains("nobody sent");
    assertThat(refused(-1, 0)).contains("which the earlier");
    assertThat(refused(2, 0)).contains("did not ask for");
  }

  /** Rank 0 sends two messages of one tag and a third one; two receives of rank 1 get these. */
  private static String refused(int first, int second) {
    OfRank sender = new OfRank(0);
    OfRank receiver = new OfRank(1);
    for (int number = 0; number < 3; number++) {
      sender.sent.add(new Sent(number, 0, 1, number / 2, 1));
    }
    receiver.posted.add(new Posted(0, 0, first));
    receiver.posted.add(new Posted(-1, 0, second));
    try {
      new MessageHistory(List.of(sender, receiver)).check(false);
      return null;
    } catch (AssertionError e) {
      return e.getMessage();
    }
  }
}
