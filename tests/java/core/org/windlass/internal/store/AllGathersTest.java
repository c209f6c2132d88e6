// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.store.TestStore.Kind;

/** The all-gathers of a store's server, at their edges. */
@Timeout(120)
class AllGathersTest {
  private static final long LONG_MS = TestStore.LONG.toMillis();

  private static Round round(String name, int size, long limitMs, int rank, String said) {
    return new Round(name, size, false, limitMs, null, Map.of(rank, said.getBytes()));
  }

  private static Round last(int rank, String said) {
    return new Round("test", 2, true, LONG_MS, null, Map.of(rank, said.getBytes()));
  }

  private static <T> CompletableFuture<T> beside(Supplier<T> call) {
    return CompletableFuture.supplyAsync(call, task -> new Thread(task).start());
  }

  /** What a member hears, as text; or what it throws. */
  private static Object heard(Store store, Round round) {
    List<String> all = new ArrayList<>();
    Throwable failure =
        catchThrowable(
            () -> store.gather(round, () -> {}).forEach(each -> all.add(new String(each))));
    return failure == null ? all : failure;
  }

  private static <T> T get(CompletableFuture<T> call) throws Exception {
    return call.get(30, TimeUnit.SECONDS);
  }

  @Test
  void asManyRanksAsThereMayBe() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Map<Integer, byte[]> own = new TreeMap<>();
      for (int rank = 0; rank < Native.WL_MAX_RANKS; rank++) {
        own.put(rank, new byte[rank % 200]);
      }
      Round round = new Round("test", own.size(), true, LONG_MS, null, own);
      assertThat(testStore.join().gather(round, () -> {})).containsExactlyElementsOf(own.values());
    }
  }

  @Test
  void whatDoesNotFitAFrameIsRefusedBeforeItIsSent() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store store = testStore.join();
      Map<Integer, byte[]> own = new TreeMap<>();
      for (int rank = 0; rank < 17; rank++) {
        own.put(rank, new byte[Limits.VALUE]);
      }
      Round round = new Round("test", 17, true, LONG_MS, null, own);
      assertThat(catchThrowable(() -> store.gather(round, () -> {})))
          .isInstanceOf(WindlassException.class)
          .hasMessageContaining("start fewer ranks in one process");
      assertThat(store.get("any", TestStore.LONG)).isEmpty();
    }
  }

  @Test
  void whoWaitsIsToldOnceRankZeroComes() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store one = testStore.join();
      Store zero = testStore.join();
      Store two = testStore.join();
      AtomicInteger notes = new AtomicInteger();
      Round first = round("test", 3, LONG_MS, 1, "b");
      CompletableFuture<List<byte[]>> waits =
          beside(() -> one.gather(first, notes::incrementAndGet));
      Thread.sleep(100);
      assertThat(notes).hasValue(0);
      CompletableFuture<Object> comes =
          beside(() -> heard(zero, round("test", 3, LONG_MS, 0, "a")));
      while (notes.get() == 0) {
        Thread.sleep(1);
      }
      assertThat(heard(two, round("test", 3, LONG_MS, 2, "c"))).isEqualTo(List.of("a", "b", "c"));
      assertThat(get(waits)).hasSize(3);
      assertThat(get(comes)).isEqualTo(List.of("a", "b", "c"));
      assertThat(notes).hasValue(1);
    }
  }

  /** The next start of a name begins at once, and its failure tells of the one before. */
  @Test
  void aNameIsFreeOnceItsStartHasFailed() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store zero = testStore.join();
      Store one = testStore.join();
      assertThat((Throwable) heard(zero, round("test", 2, 50, 0, "a")))
          .hasMessageStartingWith("rank 1 of 2 had not come to ")
          .hasMessageNotContaining("the start before");
      assertThat((Throwable) heard(one, round("test", 2, 50, 1, "b")))
          .hasMessageStartingWith("rank 0 of 2 had not come to ")
          .hasMessageContaining("; the start before has failed: rank 1 of 2 had not come");
      CompletableFuture<Object> other =
          beside(() -> heard(one, round("test", 2, LONG_MS, 1, "b")));
      assertThat(heard(zero, round("test", 2, LONG_MS, 0, "a"))).isEqualTo(List.of("a", "b"));
      assertThat(get(other)).isEqualTo(List.of("a", "b"));
    }
  }

  @Test
  void whoIsAwaitedIsLoggedBeforeTheDeadline() throws Exception {
    try (Log log = new Log();
        TestStore testStore = new TestStore(Kind.SOCKET)) {
      String address = Sockets.name(testStore.server().address());
      CompletableFuture<Object> zero =
          beside(() -> heard(testStore.join(), round("test", 4, 2000, 0, "a")));
      CompletableFuture<Object> two =
          beside(() -> heard(testStore.join(), round("test", 4, LONG_MS, 2, "c")));
      assertThat(get(zero)).isInstanceOf(WindlassException.class);
      assertThat(get(two)).isInstanceOf(WindlassException.class);
      assertThat(log.of(address))
          .filteredOn(line -> line.contains("so far; the start waits for"))
          .singleElement()
          .asString()
          .startsWith("ranks 1, 3 of 4 had not come to " + address)
          .endsWith("s more");
    }
  }

  /** A rank between two rounds asks after rank 0 has failed and closed the store. */
  @Test
  void whyItFailedIsToldToARankBetweenTwoRounds() throws Exception {
    TestStore testStore = new TestStore(Kind.SOCKET);
    List<Store> stores = List.of(testStore.join(), testStore.join(), testStore.join());
    List<CompletableFuture<Object>> first = new ArrayList<>();
    for (int rank = 0; rank < 3; rank++) {
      Round round = round("test", 3, LONG_MS, rank, "a");
      Store store = stores.get(rank);
      first.add(beside(() -> heard(store, round)));
    }
    for (CompletableFuture<Object> each : first) {
      assertThat(get(each)).isEqualTo(List.of("a", "a", "a"));
    }
    stores.get(1).close();
    String left = "rank 1 came to the start and left";
    assertThat((Throwable) heard(stores.get(0), round("test", 3, LONG_MS, 0, "b")))
        .hasMessageStartingWith(left);
    CompletableFuture<Void> closes = CompletableFuture.runAsync(testStore.server()::close);
    Thread.sleep(300);
    assertThat((Throwable) heard(stores.get(2), round("test", 3, LONG_MS, 2, "b")))
        .hasMessageStartingWith(left);
    closes.get(30, TimeUnit.SECONDS);
    testStore.close();
  }

  /** What was said in rounds that are over counts no more. */
  @Test
  void manyRoundsTakeNoMoreRoomThanOne() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store store = testStore.join();
      String said = "x".repeat(500_000);
      for (int times = 0; times < 150; times++) {
        assertThat(heard(store, round("test", 1, LONG_MS, 0, said))).isEqualTo(List.of(said));
        assertThat(heard(store, round("late", 2, 1, 0, said))).isInstanceOf(WindlassException.class);
      }
    }
  }

  @Test
  void anotherProcessOfARankThatCountsOthersIsRefused() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store one = testStore.join();
      CompletableFuture<Object> waits =
          beside(() -> heard(one, round("test", 2, LONG_MS, 1, "b")));
      Thread.sleep(200);
      assertThat((Throwable) heard(testStore.join(), round("test", 3, LONG_MS, 1, "B")))
          .hasMessageStartingWith("another process has come to this start as rank 1 too");
      assertThat(heard(testStore.join(), round("test", 2, LONG_MS, 0, "a")))
          .isEqualTo(List.of("a", "b"));
      assertThat(get(waits)).isEqualTo(List.of("a", "b"));
    }
  }

  @Test
  void moreRanksThanThereMayBeAreRefusedByName() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store store = testStore.join();
      assertThat((Throwable) heard(store, round("test", 5000, LONG_MS, 0, "a")))
          .hasMessage("a start of 5000 ranks; it may have 4096");
      assertThat(store.get("any", TestStore.LONG)).isEmpty();
    }
  }

  @Test
  void aLimitIsAsLongAsAnyDuration() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      for (Duration limit : List.of(Duration.ofSeconds(Long.MAX_VALUE), Duration.ofNanos(1))) {
        Round round = new Round("test", 1, true, Round.limitMs(limit), null, Map.of(0, new byte[1]));
        assertThat(testStore.join().gather(round, () -> {})).hasSize(1);
      }
    }
  }

  /** What a server has sent arrives, though it closes at once. */
  @Test
  void whatWasSaidArrivesBeforeTheServerCloses() throws Exception {
    for (int times = 0; times < 20; times++) {
      TestStore testStore = new TestStore(Kind.SOCKET);
      Store zero = testStore.join();
      Store one = testStore.join();
      String large = "x".repeat(400 << 10);
      CompletableFuture<Object> other = beside(() -> heard(one, last(1, large)));
      heard(zero, last(0, large));
      zero.close();
      testStore.server().close();
      assertThat(get(other)).isEqualTo(List.of(large, large));
      testStore.close();
    }
  }

  @Test
  void aSessionThatDoesNotCloseHoldsUpTheServerForTwoSeconds() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET);
        RawConnection silent = raw(testStore)) {
      silent.send(silent.sealed(frame(round("test", 2, LONG_MS, 1, "b"))));
      CompletableFuture<Object> zero =
          beside(() -> heard(testStore.join(), round("test", 2, LONG_MS, 0, "a")));
      assertThat(get(zero)).isEqualTo(List.of("a", "b"));
      long startNs = System.nanoTime();
      testStore.server().close();
      assertThat(Duration.ofNanos(System.nanoTime() - startNs))
          .isBetween(Duration.ofSeconds(1), Duration.ofSeconds(8));
    }
  }

  private static RawConnection raw(TestStore testStore) throws Exception {
    return RawConnection.member(
        testStore.server().address(), testStore.token(), Member.observer("raw", TestStore.LIBRARY));
  }

  private static byte[] frame(Round round) {
    return RawConnection.framed(Wire.gather(7, round));
  }

  @Test
  void aRoundThatIsNoneEndsTheSessionAndNothingElse() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store one = testStore.join();
      CompletableFuture<Object> waits =
          beside(() -> heard(one, round("test", 2, LONG_MS, 1, "b")));
      List<Round> wrong =
          List.of(
              round("test", 0, LONG_MS, 0, "a"),
              round("test", Native.WL_MAX_RANKS + 1, LONG_MS, 0, "a"),
              round("test", 2, 0, 0, "a"),
              round("test", 2, Long.MAX_VALUE, 0, "a"),
              round("test", 2, LONG_MS, 2, "a"),
              round("test", 2, LONG_MS, -1, "a"),
              new Round("test", 2, false, LONG_MS, null, Map.of()),
              new Round("", 2, false, LONG_MS, null, Map.of(0, new byte[1])),
              new Round("test", 2, false, LONG_MS, new Round.Presence("", new byte[1]), Map.of(0, new byte[1])));
      for (Round each : wrong) {
        try (RawConnection raw = raw(testStore)) {
          raw.send(raw.sealed(frame(each)));
          assertThat(raw.ended()).as(each.toString()).isTrue();
        }
      }
      assertThat(waits).isNotDone();
      assertThat(heard(testStore.join(), round("test", 2, LONG_MS, 0, "a")))
          .isEqualTo(List.of("a", "b"));
      assertThat(get(waits)).isEqualTo(List.of("a", "b"));
    }
  }

  /**
   * Ranks come, give up and are killed at random: whoever hears of a round hears the same as all
   * others of it.
   */
  @Test
  void whoGathersHearsWhatAllOthersHear() throws Exception {
    long seed = Long.getLong("windlass.seed", new Random().nextLong());
    System.out.println("whoGathersHearsWhatAllOthersHear seed " + seed);
    int size = 3;
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      long endNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(700);
      List<CompletableFuture<List<List<String>>>> ranks = new ArrayList<>();
      for (int i = 0; i < size; i++) {
        int rank = i;
        ranks.add(beside(() -> starts(testStore, rank, size, new Random(seed + rank), endNs)));
      }
      Map<String, List<String>> byWord = new HashMap<>();
      int met = 0;
      for (CompletableFuture<List<List<String>>> rank : ranks) {
        for (List<String> heard : get(rank)) {
          met++;
          for (String word : heard) {
            assertThat(byWord.computeIfAbsent(word, any -> heard))
                .as("seed " + seed)
                .isEqualTo(heard);
          }
        }
      }
      assertThat(met).as("seed " + seed).isPositive();
    }
  }

  /** What a rank heard in its starts, of two rounds each. */
  private static List<List<String>> starts(
      TestStore testStore, int rank, int size, Random random, long endNs) {
    List<List<String>> all = new ArrayList<>();
    Store store = testStore.join();
    for (int i = 0; System.nanoTime() < endNs; i++) {
      for (int step = 0; step < 2; step++) {
        String said = step + " " + rank + " " + i;
        Round round =
            new Round(
                "test", size, step == 1, 1 + random.nextInt(60), null, Map.of(rank, said.getBytes()));
        Object heard = heard(store, round);
        if (heard instanceof Throwable) {
          break;
        }
        all.add(((List<?>) heard).stream().map(String::valueOf).collect(Collectors.toList()));
      }
      if (random.nextInt(4) == 0) {
        store.close();
        store = testStore.join();
      } else {
        store.quit("test");
      }
    }
    return all;
  }
}
