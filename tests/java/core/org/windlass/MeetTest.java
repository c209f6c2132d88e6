// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InternalException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;
import org.windlass.launch.Rendezvous;
import org.windlass.testing.NothingLeft;
import org.windlass.testing.Processes;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;
import org.windlass.testing.Ucx;

/** Starts by what has started the ranks, here threads of one JVM, or JVMs with several ranks each. */
@Timeout(180)
@ExtendWith(NothingLeft.class)
class MeetTest {
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final Duration SHORT = Duration.ofMillis(500);
  private static final CommunicatorOptions OPTIONS = CommunicatorOptions.defaults();

  @TempDir Path folder;

  /** The all-gather of threads of one JVM. */
  private static final class Table {
    private final int size;
    private final List<byte[][]> rounds = new ArrayList<>();

    Table(int size) {
      this.size = size;
    }

    synchronized List<byte[]> tell(int rank, int round, byte[] own, Duration deadline)
        throws InterruptedException, TimeoutException {
      while (rounds.size() <= round) {
        rounds.add(new byte[size][]);
      }
      byte[][] said = rounds.get(round);
      said[rank] = own;
      notifyAll();
      long start = System.nanoTime();
      while (Arrays.asList(said).contains(null)) {
        long left = deadline.minusNanos(System.nanoTime() - start).toMillis();
        if (left <= 0) {
          throw new TimeoutException("the table has a free chair");
        }
        wait(left);
      }
      return List.of(said);
    }
  }

  /** One rank's place at it. */
  private static class Seat implements Rendezvous {
    private final Table table;
    private final int rank;
    int round;

    Seat(Table table, int rank) {
      this.table = table;
      this.rank = rank;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public int size() {
      return table.size;
    }

    @Override
    public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
      return table.tell(rank, round++, own, deadline);
    }

    /** One at which what others have said is read so. */
    Seat reading(UnaryOperator<List<byte[]>> otherwise) {
      return new Seat(table, rank) {
        @Override
        public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
          return otherwise.apply(super.allGather(own, deadline));
        }
      };
    }

    /** One at which what this rank says is another thing. */
    Seat saying(UnaryOperator<byte[]> otherwise) {
      return new Seat(table, rank) {
        @Override
        public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
          return super.allGather(otherwise.apply(own), deadline);
        }
      };
    }
  }

  private static List<Seat> seats(int size) {
    Table table = new Table(size);
    List<Seat> seats = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      seats.add(new Seat(table, rank));
    }
    return seats;
  }

  /** What each thread returns or throws. */
  private static List<Object> all(int threads, IntFunction<Object> body) throws Exception {
    List<FutureTask<Object>> tasks = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      int own = i;
      FutureTask<Object> task =
          new FutureTask<>(
              () -> {
                Object[] result = new Object[1];
                Throwable failure = catchThrowable(() -> result[0] = body.apply(own));
                return failure != null ? failure : result[0];
              });
      tasks.add(task);
      new Thread(task).start();
    }
    List<Object> results = new ArrayList<>();
    for (FutureTask<Object> task : tasks) {
      results.add(task.get(50, TimeUnit.SECONDS));
    }
    return results;
  }

  private static Object summed(Communicator comm) {
    try (comm) {
      Tensor tensor = Tensor.allocate(DType.I64, 1000);
      tensor.copyFrom(longs(comm.rank() + 1));
      comm.allReduce(tensor, ReduceOp.SUM);
      long[] sum = new long[1000];
      tensor.copyTo(sum);
      assertThat(sum).containsOnly(comm.size() * (comm.size() + 1L) / 2);
      return comm.rank();
    }
  }

  private static long[] longs(long value) {
    long[] values = new long[1000];
    Arrays.fill(values, value);
    return values;
  }

  private static List<Object> meet(List<Seat> seats, Duration deadline) throws Exception {
    return all(
        seats.size(), i -> summed(Communicator.meet(seats.get(i), OPTIONS, deadline)));
  }

  @Test
  void threadsOfOneProcessStart() throws Exception {
    for (int size : new int[] {1, 2, 3, 7}) {
      List<Seat> seats = seats(size);
      for (int again = 0; again < 3; again++) {
        assertThat(meet(seats, LONG)).doesNotHaveDuplicates().hasOnlyElementsOfType(Integer.class);
      }
    }
  }

  @Test
  void ranksThatDoNotComeAreMissedInTime() throws Exception {
    List<Seat> seats = seats(3).subList(0, 2);
    long start = System.nanoTime();
    for (Object failure : meet(seats, SHORT)) {
      assertThat(failure)
          .isInstanceOf(DeadlineExceededException.class)
          .asString()
          .contains("some of 3 ranks had not reached step arrive", "the table has a free chair");
    }
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(LONG);
  }

  /** Each is told why, and nothing is left. */
  private void assertFails(List<Seat> seats, Class<?> type, String... why) throws Exception {
    for (Object failure : meet(seats, LONG)) {
      assertThat(failure).isInstanceOf(type).asString().contains(why);
    }
  }

  @Test
  void ranksOfSeveralMachinesStart() throws Exception {
    Ucx.require();
    byte[] host = Files.readAllBytes(Path.of("/proc/sys/kernel/random/boot_id"));
    String own = new String(host, StandardCharsets.US_ASCII).strip();
    List<Seat> seats = seats(3);
    seats.set(
        2,
        seats.get(2)
            .saying(
                word ->
                    new String(word, StandardCharsets.ISO_8859_1)
                        .replace(own, own.replaceAll("[0-9a-f]", "7"))
                        .getBytes(StandardCharsets.ISO_8859_1)));
    assertThat(meet(seats, LONG)).containsExactly(0, 1, 2);
  }

  @Test
  void otherOptionsAreRefusedByName() throws Exception {
    List<Seat> seats = seats(2);
    List<Object> failures =
        all(
            2,
            i ->
                Communicator.meet(
                    seats.get(i), OPTIONS.withDeadline(Duration.ofSeconds(i + 1)), LONG));
    for (Object failure : failures) {
      assertThat(failure)
          .isInstanceOf(MismatchException.class)
          .asString()
          .contains(
              "ranks 0 and 1 were given deadline=1 s and deadline=2 s; give all");
    }
  }

  @Test
  void whatIsNoPartOfAStartIsRefused() throws Exception {
    List<Seat> words = seats(2);
    words.set(1, words.get(1).saying(word -> "partition 1".getBytes(StandardCharsets.US_ASCII)));
    assertThat(meet(words, LONG).get(0))
        .isInstanceOf(MismatchException.class)
        .asString()
        .contains("what rank 1 says at the start can't be read");

    List<Seat> few = seats(2);
    few.set(1, few.get(1).reading(all -> all.subList(0, 1)));
    assertThat(meet(few, SHORT).get(1))
        .isInstanceOf(MismatchException.class)
        .asString()
        .contains("an all-gather of 2 ranks gave the data of 1 ranks");

    List<Seat> twins = seats(2);
    twins.set(1, twins.get(1).reading(all -> List.of(all.get(0), all.get(0))));
    assertThat(meet(twins, SHORT).get(1))
        .isInstanceOf(MismatchException.class)
        .asString()
        .contains("another has said that it is rank 1");

    List<Seat> behind = seats(2);
    behind.set(
        1,
        behind.get(1)
            .saying(
                word ->
                    new String(word, StandardCharsets.ISO_8859_1)
                        .replace("arrive", "attach")
                        .getBytes(StandardCharsets.ISO_8859_1)));
    assertThat(meet(behind, LONG).get(0))
        .isInstanceOf(MismatchException.class)
        .asString()
        .contains("rank 1 is at step attach of its start, rank 0 at arrive");

    assertThatThrownBy(() -> Communicator.meet(new Seat(new Table(2), 2), OPTIONS, LONG))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("rank 2 of 2");
  }

  @Test
  void ranksOfOneProcessInSeveralClassLoadersAreRefused() throws Exception {
    List<Seat> seats = seats(2);
    seats.set(
        0,
        seats.get(0)
            .reading(
                all -> {
                  byte[] other = all.get(1).clone();
                  other[0] ^= 1; // of the member, which begins with the loader
                  return List.of(all.get(0), other);
                }));
    assertThat(meet(seats, SHORT).get(0))
        .isInstanceOf(UnsupportedException.class)
        .asString()
        .contains("ranks 0 and 1 are in one process", "load it once for both");
  }

  @Test
  void whatTheRendezvousThrowsIsPassedOn() throws Exception {
    Seat killed =
        new Seat(new Table(2), 0) {
          @Override
          public List<byte[]> allGather(byte[] own, Duration deadline) {
            throw new IllegalStateException("killed");
          }
        };
    assertThatThrownBy(() -> Communicator.meet(killed, OPTIONS, LONG))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("killed");
    Seat broken =
        new Seat(new Table(2), 0) {
          @Override
          public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
            throw new IOException("no route");
          }
        };
    assertThatThrownBy(() -> Communicator.meet(broken, OPTIONS, LONG))
        .isInstanceOf(AbortedException.class)
        .hasMessageContaining("step arrive of the start: java.io.IOException: no route");
  }

  @Test
  void anInterruptEndsAStart() throws Exception {
    Thread own = Thread.currentThread();
    CountDownLatch comes = new CountDownLatch(1);
    Seat seat =
        new Seat(new Table(2), 0) {
          @Override
          public List<byte[]> allGather(byte[] word, Duration deadline) throws Exception {
            comes.countDown();
            return super.allGather(word, deadline);
          }
        };
    Thread other =
        new Thread(
            () -> {
              try {
                comes.await();
                own.interrupt();
              } catch (InterruptedException e) {
                throw new AssertionError(e);
              }
            });
    other.start();
    Throwable failure = catchThrowable(() -> Communicator.meet(seat, OPTIONS, LONG));
    assertThat(Thread.interrupted()).isTrue();
    other.join();
    assertThat(failure).isInstanceOf(AbortedException.class).hasMessageContaining("interrupted");
  }

  /** Of one rank's words in a start of one process. */
  @RandomSeeds(value = 20, inLong = 500)
  void mutatedWordsAreRefused(long seed) throws Exception {
    Random random = new Random(seed);
    List<Seat> seats = seats(2);
    seats.set(
        1,
        seats.get(1)
            .saying(
                word -> {
                  byte[] other = Arrays.copyOf(word, random.nextInt(word.length + 8));
                  for (int i = random.nextInt(3); i > 0 && other.length > 0; i--) {
                    other[random.nextInt(other.length)] = (byte) random.nextInt(256);
                  }
                  return other;
                }));
    for (Object result : meet(seats, SHORT)) {
      assertThat(result)
          .isInstanceOfAny(Integer.class, WindlassException.class)
          .isNotInstanceOf(InternalException.class);
    }
  }

  /** The all-gather of JVMs, at a store of the test's. */
  private static final class StoreSeat implements Rendezvous, AutoCloseable {
    private final int rank;
    private final int size;
    private final Store store;
    private int round;

    StoreSeat(int rank, int size) {
      this.rank = rank;
      this.size = size;
      store =
          SocketStore.connect(
              HostAndPort.parse("TEST_TABLE", System.getenv("TEST_TABLE"), ""),
              Token.fromEnvironment(System.getenv()).orElseThrow(),
              Member.observer("meet", "test"),
              LONG);
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public int size() {
      return size;
    }

    @Override
    public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
      store.set("round/" + round + "/" + rank, own, LONG);
      List<byte[]> all = new ArrayList<>();
      try {
        for (int other = 0; other < size; other++) {
          all.add(store.awaitOther("round/" + round + "/" + other, null, deadline).orElseThrow());
        }
      } catch (DeadlineExceededException e) {
        throw new TimeoutException(e.getMessage());
      }
      round++;
      return all;
    }

    @Override
    public void close() {
      store.close();
    }
  }

  private void run(int jvms, String body) throws Exception {
    run(jvms, "", body);
  }

  /** JVM j is on the host that the j-th letter of {@code hosts} names, where there are any. */
  private void run(int jvms, String hosts, String body) throws Exception {
    String token = Token.random().digits();
    try (StoreServer table =
            StoreServer.open(
                StoreServer.loopback(),
                Token.parse(token, "the test"),
                "test",
                StoreServer.Bounds.defaults());
        Processes processes = new Processes(MeetTest.class, jvms, folder)) {
      processes.with("TEST_TABLE", table.name()).with("WINDLASS_TOKEN", token);
      List<Processes.Rank> started = new ArrayList<>();
      for (int jvm = 0; jvm < jvms; jvm++) {
        Map<String, String> variables = new HashMap<>();
        variables.put("TEST_JVM", jvm + " " + jvms);
        if (!hosts.isEmpty()) {
          variables.put("WINDLASS_HOST", "" + hosts.charAt(jvm));
        }
        started.add(processes.start(jvm, body, variables));
      }
      for (Processes.Rank jvm : started) {
        jvm.ended();
      }
    }
  }

  /** Ranks of this JVM where each JVM has every {@code jvms}-th, as executors of Spark may. */
  private static List<StoreSeat> ownSeats(int size) {
    String[] words = System.getenv("TEST_JVM").split(" ");
    List<StoreSeat> seats = new ArrayList<>();
    for (int rank = Integer.parseInt(words[0]); rank < size; rank += Integer.parseInt(words[1])) {
      seats.add(new StoreSeat(rank, size));
    }
    return seats;
  }

  @Test
  void threadsOfSeveralProcessesStart() throws Exception {
    run(2, "fiveRanks");
  }

  static void fiveRanks() throws Exception {
    List<StoreSeat> seats = ownSeats(5);
    for (int again = 0; again < 2; again++) {
      int round = again;
      List<Object> results =
          all(
              seats.size(),
              i -> {
                Communicator comm = Communicator.meet(seats.get(i), OPTIONS, LONG);
                long processes =
                    comm.report().ranks().stream()
                        .map(rank -> rank.process().orElseThrow().pid())
                        .distinct()
                        .count();
                assertThat(processes).isEqualTo(2);
                // Which this process's ranks share; that of the start before goes with the garbage.
                assertThat(groups()).isBetween(1L, round + 1L);
                return summed(comm);
              });
      assertThat(results).hasOnlyElementsOfType(Integer.class);
    }
    seats.forEach(StoreSeat::close);
  }

  @Test
  void threadsOfProcessesOfSeveralHostsStart() throws Exception {
    Ucx.require();
    run(3, "aba", "fiveRanksOfTwoHosts");
  }

  static void fiveRanksOfTwoHosts() throws Exception {
    List<StoreSeat> seats = ownSeats(5);
    for (int again = 0; again < 2; again++) {
      List<Object> results =
          all(seats.size(), i -> summed(Communicator.meet(seats.get(i), OPTIONS, LONG)));
      assertThat(results).hasOnlyElementsOfType(Integer.class);
    }
    seats.forEach(StoreSeat::close);
  }

  /** How many this process has attached to. */
  private static long groups() {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files
          .filter(
              file -> {
                try {
                  return Files.readSymbolicLink(file).toString().contains("memfd:windlass");
                } catch (IOException e) {
                  return false; // closed meanwhile
                }
              })
          .count();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void oneRankThatGivesUpFailsTheStartOnAll() throws Exception {
    run(2, "fourRanksOfWhichOneGivesUp");
  }

  /** Rank 2, for which rank 0 does what is done once a process. */
  static void fourRanksOfWhichOneGivesUp() throws Exception {
    List<StoreSeat> seats = ownSeats(4);
    all(seats.size(), i -> summed(Communicator.meet(seats.get(i), OPTIONS, LONG)));
    Resources before = Resources.now();
    List<Object> results =
        all(
            seats.size(),
            i -> {
              StoreSeat seat = seats.get(i);
              Rendezvous given =
                  seat.rank() != 2
                      ? seat
                      : new Rendezvous() {
                        @Override
                        public int rank() {
                          return seat.rank();
                        }

                        @Override
                        public int size() {
                          return seat.size();
                        }

                        @Override
                        public List<byte[]> allGather(byte[] own, Duration deadline)
                            throws Exception {
                          if (seat.round == 5) { // attach, of the second start
                            throw new IllegalStateException("gives up");
                          }
                          return seat.allGather(own, deadline);
                        }
                      };
              return Communicator.meet(given, OPTIONS, Duration.ofSeconds(3));
            });
    for (int i = 0; i < seats.size(); i++) {
      if (seats.get(i).rank() == 2) {
        assertThat(results.get(i)).asString().contains("gives up");
      } else {
        assertThat(results.get(i))
            .isInstanceOf(DeadlineExceededException.class)
            .asString()
            .contains("step attach of the start");
      }
    }
    before.requireNoMoreNow();
    seats.forEach(StoreSeat::close);
  }
}
