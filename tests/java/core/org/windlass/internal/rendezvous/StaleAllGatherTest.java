// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.internal.store.TestStore.LONG;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.TestStore;
import org.windlass.internal.store.TestStore.Kind;

/** Keys of processes and starts that are over, or are not of an all-gather, and what they change. */
@Timeout(60)
class StaleAllGatherTest {
  private final TestStore testStore = new TestStore(Kind.SOCKET);

  @AfterEach
  void close() {
    testStore.close();
  }

  private static StoreAllGather all(Store store, int size) {
    return new StoreAllGather(store, "test", size, null);
  }

  private static <T> CompletableFuture<T> beside(Supplier<T> call) {
    return CompletableFuture.supplyAsync(call, task -> new Thread(task).start());
  }

  private static Map<Integer, byte[]> of(String said, int... ranks) {
    Map<Integer, byte[]> own = new LinkedHashMap<>();
    for (int rank : ranks) {
      own.put(rank, said.getBytes());
    }
    return own;
  }

  /** Returns what a process hears in a round, as text, or what it throws. */
  private static Object heard(StoreAllGather all, Map<Integer, byte[]> own, Duration limit) {
    List<String> heard = new ArrayList<>();
    Throwable failure =
        catchThrowable(
            () -> all.round(own, false, limit).forEach(each -> heard.add(new String(each))));
    return failure == null ? heard : failure;
  }

  private static CompletableFuture<Object> hears(StoreAllGather all, String said, int... ranks) {
    return beside(() -> heard(all, of(said, ranks), LONG));
  }

  private static Object get(CompletableFuture<Object> call) throws Exception {
    return call.get(10, TimeUnit.SECONDS);
  }

  private static void round(List<StoreAllGather> ranks, String said) throws Exception {
    List<CompletableFuture<Object>> calls = new ArrayList<>();
    for (int rank = 0; rank < ranks.size(); rank++) {
      calls.add(hears(ranks.get(rank), said, rank));
    }
    for (CompletableFuture<Object> each : calls) {
      assertThat(get(each)).isEqualTo(Collections.nCopies(ranks.size(), said));
    }
  }

  /** Returns a store that passes calls on. It tells {@code gets} the key of each get before. */
  private static Store watched(Store store, Consumer<String> gets) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(), new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("get")) {
                gets.accept((String) arguments[0]);
              }
              try {
                return method.invoke(store, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** Rank 0 has read the head of what rank 1 says, and not the rest. */
  @Test
  void aRankThatSaysMuchMayComeAgainInTheFirstRound() throws Exception {
    Store killed = testStore.join();
    CompletableFuture<Object> first = hears(all(killed, 2), "x".repeat(700_000), 1);
    Store closing =
        watched(
            testStore.join(),
            key -> {
              if (key.equals("test/1/rank/1")) {
                killed.close();
              }
            });
    CompletableFuture<Object> zero = hears(all(closing, 2), "a", 0);
    assertThat(get(first)).isInstanceOf(WindlassException.class);
    CompletableFuture<Object> again = hears(all(testStore.join(), 2), "b", 1);
    assertThat(get(zero)).isEqualTo(List.of("a", "b"));
    assertThat(get(again)).isEqualTo(List.of("a", "b"));
  }

  /** Rank 2 is replaced at once, while rank 0 waits for rank 1. */
  @Test
  void aProcessThatComesAgainAfterTheFirstRoundIsNotAwaited() throws Exception {
    List<Store> stores = List.of(testStore.join(), testStore.join(), testStore.join());
    Store another = testStore.join();
    List<StoreAllGather> ranks = stores.stream().map(store -> all(store, 3)).toList();
    round(ranks, "a");
    round(ranks, "b");
    stores.get(2).close();
    CompletableFuture<Object> again = hears(all(another, 3), "new", 2);
    while (another.get("test/rank/2", LONG).isEmpty()) {
      Thread.sleep(1);
    }
    CompletableFuture<Object> zero = hears(ranks.get(0), "c", 0);
    CompletableFuture<Object> one = hears(ranks.get(1), "c", 1);
    for (CompletableFuture<Object> each : List.of(zero, one, again)) {
      assertThat((Throwable) get(each)).isInstanceOf(PeerLostException.class)
          .hasMessageStartingWith("rank 2 joined the start and left");
    }
  }

  /** Rank 1 gives up after a round, and comes again while the others are busy. */
  @Test
  void allValuesOfAStartBeforeAreNotOfThis() throws Exception {
    Store one = testStore.join();
    List<StoreAllGather> ranks =
        List.of(all(testStore.join(), 3), all(one, 3), all(testStore.join(), 3));
    round(ranks, "a");
    ranks.get(1).quit();
    Object heard = heard(all(one, 3), of("new", 1), Duration.ofMillis(500));
    assertThat(heard).isInstanceOf(DeadlineExceededException.class);
  }

  /** Somebody still reports the failure of the start before. */
  @Test
  void aFailureIsReportedAlthoughThatOfTheStartBeforeIsStillThere() throws Exception {
    Store before = testStore.join();
    byte[] old =
        Encoding.bytes(
            out -> Encoding.putFailure(out, new MismatchException("old", List.of(0))));
    before.hold("test/failed", old, LONG);
    CompletableFuture<Object> two = hears(all(testStore.join(), 3), "c", 2);
    CompletableFuture<Object> one = hears(all(testStore.join(), 4), "b", 1);
    Thread.sleep(200);
    CompletableFuture<Object> zero = hears(all(testStore.join(), 3), "a", 0);
    for (CompletableFuture<Object> each : List.of(zero, one, two)) {
      assertThat((Throwable) get(each)).isInstanceOf(MismatchException.class)
          .hasMessageStartingWith("rank 0 was started as one of 3 ranks");
    }
    before.close();
    assertThat(testStore.join().keys("", LONG)).isEmpty();
  }

  @Test
  void onlyTheLaterProcessOfARankFailsThoughItSaysMuch() throws Exception {
    CompletableFuture<Object> waits = hears(all(testStore.join(), 2), "b", 1);
    Thread.sleep(200);
    String much = "x".repeat(700_000);
    assertThat((Throwable) heard(all(testStore.join(), 2), of(much, 1), LONG))
        .hasMessageStartingWith("another process has joined this start as rank 1 too");
    assertThat(heard(all(testStore.join(), 2), of("a", 0), LONG)).isEqualTo(List.of("a", "b"));
    assertThat(get(waits)).isEqualTo(List.of("a", "b"));
  }

  /** Processes with several ranks each, of which they share one. */
  @Test
  void twoProcessesThatShareARankFailAtOnce() throws Exception {
    CompletableFuture<Object> zero = hears(all(testStore.join(), 4), "a", 0);
    CompletableFuture<Object> one = hears(all(testStore.join(), 4), "b", 1, 2);
    Thread.sleep(300);
    CompletableFuture<Object> two = hears(all(testStore.join(), 4), "c", 2, 3);
    for (CompletableFuture<Object> each : List.of(zero, one, two)) {
      assertThat((Throwable) get(each)).isInstanceOf(MismatchException.class);
    }
  }

  @Test
  void aReportedReasonPrints() throws Exception {
    CompletableFuture<Object> zero = hears(all(testStore.join(), 2), "a", 0);
    Thread.sleep(200);
    byte[] told =
        Encoding.bytes(
            out -> Encoding.putFailure(out, new MismatchException("\u001b[2J", List.of(1))));
    testStore.join().hold("test/failed", told, LONG);
    assertThat((Throwable) get(zero)).hasMessage("?[2J");
  }

  @Test
  void whoSaysWhatCannotBeReadIsNamed() throws Exception {
    testStore.join().hold("test/rank/1", new byte[] {1, 2, 3}, LONG);
    Object heard = heard(all(testStore.join(), 2), of("a", 0), LONG);
    assertThat(((WindlassException) heard).faultyRanks()).containsExactly(1);
  }

  /** If each asked for the values of all, some would name those that have failed meanwhile. */
  @Test
  void whenADeadlinePassesOneProcessFindsOutWhoIsMissing() throws Exception {
    int size = 100;
    AtomicInteger gets = new AtomicInteger();
    Store counting = watched(testStore.join(), key -> gets.incrementAndGet());
    Deadline until = Deadline.of(Duration.ofSeconds(2));
    List<CompletableFuture<Object>> calls = new ArrayList<>();
    for (int i = 0; i < size - 1; i++) {
      int rank = i;
      calls.add(beside(() -> heard(all(counting, size), of("a", rank), until.left())));
    }
    Set<String> reasons = new TreeSet<>();
    for (CompletableFuture<Object> each : calls) {
      reasons.add(((Throwable) get(each)).getMessage());
    }
    assertThat(reasons).singleElement().asString().startsWith("rank 99 of 100 had not joined at ");
    assertThat(gets.get()).isLessThan(10 * size);
  }
}
