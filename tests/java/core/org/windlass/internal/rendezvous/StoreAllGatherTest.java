// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.internal.store.TestStore.LONG;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.store.Log;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.TestStore;
import org.windlass.internal.store.TestStore.Kind;

/** All-gathers at a store, at their edges. */
@Timeout(120)
class StoreAllGatherTest {
  private static final Duration SHORT = Duration.ofMillis(50);

  private static StoreAllGather all(Store store, int size) {
    return new StoreAllGather(store, "test", size, null);
  }

  private static <T> CompletableFuture<T> beside(Supplier<T> call) {
    return CompletableFuture.supplyAsync(call, task -> new Thread(task).start());
  }

  /** What a rank hears in a round, as text; or what it throws. */
  private static Object heard(StoreAllGather all, int rank, String said, Duration limit) {
    return heard(all, rank, said, false, limit);
  }

  private static Object heard(
      StoreAllGather all, int rank, String said, boolean isLast, Duration limit) {
    List<String> heard = new ArrayList<>();
    Throwable failure =
        catchThrowable(
            () ->
                all.round(Map.of(rank, said.getBytes()), isLast, limit)
                    .forEach(each -> heard.add(new String(each))));
    return failure == null ? heard : failure;
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
      assertThat(all(testStore.join(), own.size()).round(own, true, LONG))
          .containsExactlyElementsOf(own.values());
    }
  }

  /** It is known as long as the others are awaited. */
  @Test
  void whoWaitsKnowsOnceRankZeroHasCome() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      StoreAllGather one = all(testStore.join(), 3);
      CompletableFuture<Object> waits = beside(() -> heard(one, 1, "b", LONG));
      Thread.sleep(100);
      assertThat(one.isOpen()).isFalse();
      CompletableFuture<Object> comes =
          beside(() -> heard(all(testStore.join(), 3), 0, "a", LONG));
      while (!one.isOpen()) {
        Thread.sleep(1);
      }
      assertThat(waits).isNotDone();
      assertThat(heard(all(testStore.join(), 3), 2, "c", LONG)).isEqualTo(List.of("a", "b", "c"));
      assertThat(get(waits)).isEqualTo(List.of("a", "b", "c"));
      assertThat(get(comes)).isEqualTo(List.of("a", "b", "c"));
    }
  }

  /** The next start of a name begins at once, on the same connections. */
  @Test
  void aNameIsFreeOnceItsStartHasFailed() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store zero = testStore.join();
      Store one = testStore.join();
      assertThat((Throwable) heard(all(zero, 2), 0, "a", SHORT))
          .hasMessageStartingWith("rank 1 of 2 had not joined at ");
      assertThat((Throwable) heard(all(one, 2), 1, "b", SHORT))
          .hasMessageStartingWith("rank 0 of 2 had not joined at ");
      assertThat(one.keys("", LONG)).isEmpty();
      CompletableFuture<Object> other = beside(() -> heard(all(one, 2), 1, "b", LONG));
      assertThat(heard(all(zero, 2), 0, "a", LONG)).isEqualTo(List.of("a", "b"));
      assertThat(get(other)).isEqualTo(List.of("a", "b"));
    }
  }

  /** A failure of an all-gather before that somebody still reports is not one of this. */
  @Test
  void aFailureOfTheStartBeforeIsNotOneOfThis() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store before = testStore.join();
      before.hold("test/failed", new byte[] {1, 2, 3}, LONG);
      CompletableFuture<Object> one = beside(() -> heard(all(testStore.join(), 2), 1, "b", LONG));
      Thread.sleep(200);
      assertThat(one).isNotDone();
      before.close();
      assertThat(heard(all(testStore.join(), 2), 0, "a", LONG)).isEqualTo(List.of("a", "b"));
      assertThat(get(one)).isEqualTo(List.of("a", "b"));
    }
  }

  @Test
  void whoIsAwaitedIsLoggedBeforeTheDeadline() throws Exception {
    try (Log log = new Log();
        TestStore testStore = new TestStore(Kind.SOCKET)) {
      String address = testStore.server().name();
      CompletableFuture<Object> zero =
          beside(() -> heard(all(testStore.join(), 4), 0, "a", Duration.ofSeconds(3)));
      CompletableFuture<Object> two = beside(() -> heard(all(testStore.join(), 4), 2, "c", LONG));
      assertThat(get(zero)).isInstanceOf(WindlassException.class);
      assertThat(get(two)).isInstanceOf(WindlassException.class);
      assertThat(log.of(address))
          .filteredOn(line -> line.contains("so far; the start waits for"))
          .singleElement()
          .asString()
          .startsWith("ranks 1, 3 of 4 had not joined at " + address)
          .endsWith("s more");
    }
  }

  private static void firstRound(List<StoreAllGather> ranks) throws Exception {
    List<CompletableFuture<Object>> first = new ArrayList<>();
    for (int i = 0; i < ranks.size(); i++) {
      int rank = i;
      first.add(beside(() -> heard(ranks.get(rank), rank, "a", LONG)));
    }
    for (CompletableFuture<Object> each : first) {
      assertThat(get(each)).isEqualTo(Collections.nCopies(ranks.size(), "a"));
    }
  }

  /** A rank between two rounds asks after others have heard of a failure. */
  @Test
  void whyItFailedIsToldToARankBetweenTwoRounds() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      List<Store> stores = List.of(testStore.join(), testStore.join(), testStore.join());
      List<StoreAllGather> ranks = stores.stream().map(store -> all(store, 3)).toList();
      firstRound(ranks);
      stores.get(1).close();
      String left = "rank 1 joined the start and left";
      CompletableFuture<Object> zero = beside(() -> heard(ranks.get(0), 0, "b", LONG));
      Thread.sleep(500);
      assertThat((Throwable) heard(ranks.get(2), 2, "b", LONG)).hasMessageStartingWith(left);
      assertThat((Throwable) get(zero)).hasMessageStartingWith(left);
    }
  }

  /** Rank 0 waits for rank 1, which is stopped, and notices that rank 2 has ended. */
  @Test
  void aRankThatEndsIsNoticedWhileAnotherIsAwaited() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      List<Store> stores = List.of(testStore.join(), testStore.join(), testStore.join());
      List<StoreAllGather> ranks = stores.stream().map(store -> all(store, 3)).toList();
      firstRound(ranks);
      CompletableFuture<Object> zero = beside(() -> heard(ranks.get(0), 0, "b", LONG));
      Thread.sleep(100);
      stores.get(2).close();
      assertThat((Throwable) zero.get(5, TimeUnit.SECONDS))
          .hasMessageStartingWith("rank 2 joined the start and left");
    }
  }

  /** Rank 0 has read what it said, and waits for rank 2. */
  @Test
  void aRankMayComeAgainInTheFirstRound() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      CompletableFuture<Object> zero = beside(() -> heard(all(testStore.join(), 3), 0, "a", LONG));
      Store killed = testStore.join();
      CompletableFuture<Object> first = beside(() -> heard(all(killed, 3), 1, "old", LONG));
      Thread.sleep(500);
      killed.close();
      assertThat(get(first)).isInstanceOf(WindlassException.class);
      Thread.sleep(500);
      CompletableFuture<Object> again = beside(() -> heard(all(testStore.join(), 3), 1, "b", LONG));
      assertThat(heard(all(testStore.join(), 3), 2, "c", LONG)).isEqualTo(List.of("a", "b", "c"));
      assertThat(get(zero)).isEqualTo(List.of("a", "b", "c"));
      assertThat(get(again)).isEqualTo(List.of("a", "b", "c"));
    }
  }

  /** What was said in rounds that are over counts no more. */
  @Test
  void manyRoundsTakeNoMoreRoomThanOne() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store store = testStore.join();
      StoreAllGather all = all(store, 1);
      String said = "x".repeat(500_000);
      for (int times = 0; times < 150; times++) {
        assertThat(heard(all, 0, said, LONG)).isEqualTo(List.of(said));
      }
    }
  }

  @Test
  void anotherProcessOfARankThatCountsOthersIsRefused() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      CompletableFuture<Object> waits = beside(() -> heard(all(testStore.join(), 2), 1, "b", LONG));
      Thread.sleep(200);
      assertThat((Throwable) heard(all(testStore.join(), 3), 1, "B", LONG))
          .hasMessageStartingWith("another process has joined this start as rank 1 too");
      assertThat(heard(all(testStore.join(), 2), 0, "a", LONG)).isEqualTo(List.of("a", "b"));
      assertThat(get(waits)).isEqualTo(List.of("a", "b"));
    }
  }

  @Test
  void moreRanksThanThereMayBeAreRefusedByName() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store store = testStore.join();
      assertThat((Throwable) heard(all(store, 5000), 0, "a", LONG))
          .hasMessage("a start of 5000 ranks; it may have 4096");
      assertThat(store.get("any", LONG)).isEmpty();
    }
  }

  @Test
  void aLimitIsAsLongAsAnyDuration() {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      for (Duration limit : List.of(Duration.ofSeconds(Long.MAX_VALUE), Duration.ofNanos(1))) {
        StoreAllGather all = all(testStore.join(), 1);
        if (limit.getSeconds() > 0) {
          assertThat(heard(all, 0, "a", limit)).isEqualTo(List.of("a"));
        } else {
          assertThat(heard(all, 0, "a", limit)).isInstanceOf(DeadlineExceededException.class);
        }
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
      CompletableFuture<Object> other = beside(() -> heard(all(one, 2), 1, large, true, LONG));
      assertThat(heard(all(zero, 2), 0, large, true, LONG)).isEqualTo(List.of(large, large));
      zero.close();
      testStore.server().close();
      assertThat(get(other)).isEqualTo(List.of(large, large));
      testStore.close();
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
      StoreAllGather start = all(store, size);
      for (int step = 0; step < 2; step++) {
        String said = step + " " + rank + " " + i;
        Duration limit = Duration.ofMillis(1 + random.nextInt(60));
        Object heard = heard(start, rank, said, step == 1, limit);
        if (heard instanceof Throwable) {
          break;
        }
        all.add(((List<?>) heard).stream().map(String::valueOf).collect(Collectors.toList()));
      }
      if (random.nextInt(4) == 0) {
        store.close();
        store = testStore.join();
      } else {
        start.quit();
      }
    }
    return all;
  }
}
