// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Hooked;
import org.windlass.internal.store.Meeting;
import org.windlass.internal.store.Store;

/** Starts that follow one another at a store which outlives them: none hears what another said. */
@Timeout(60)
class GatheringAgainTest {
  private static final Duration MOMENT = Duration.ofSeconds(1);

  private static Gathering gathering(Store store, int size, Duration deadline) {
    return new Gathering(store, "test/", null, size, deadline, Failure::make);
  }

  private static Map<Integer, byte[]> own(int rank, String said) {
    return Map.of(rank, said.getBytes());
  }

  private static <T> CompletableFuture<T> beside(Supplier<T> call) {
    CompletableFuture<T> result = new CompletableFuture<>();
    new Thread(
            () -> {
              try {
                result.complete(call.get());
              } catch (Throwable e) {
                result.completeExceptionally(e);
              }
            })
        .start();
    return result;
  }

  /** What a rank hears, or throws. */
  private static CompletableFuture<Object> arriving(Gathering gathering, int rank, String said) {
    return beside(() -> heard(gathering, "arrive", rank, said));
  }

  private static Object heard(Gathering gathering, String step, int rank, String said) {
    List<Object> all = new ArrayList<>();
    Throwable failure =
        catchThrowable(
            () -> gathering.gather(step, own(rank, said), null).forEach(v -> all.add(text(v))));
    return failure == null ? all : failure;
  }

  private static String text(byte[] value) {
    return new String(value);
  }

  private static <T> T get(CompletableFuture<T> result) throws Exception {
    return result.get(30, TimeUnit.SECONDS);
  }

  private static void assertFailed(Object heard, String why) {
    assertThat(heard).isInstanceOf(Failure.class);
    assertThat((Failure) heard).hasMessageContaining(why);
  }

  /** It comes while rank 0 still tells the others why the start before has failed. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoComesThenWaitsForTheNextStart(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store observer = meeting.join();
      Store store0 = meeting.join();
      Gathering first = gathering(store0, 3, MOMENT);
      assertFailed(get(arriving(first, 0, "first")), "of 3 had not come");
      CompletableFuture<Object> one =
          arriving(gathering(meeting.join(), 3, Meeting.LONG), 1, "b");
      observer.await("test/rank/1", Meeting.LONG);
      first.leave(List.of(0));
      CompletableFuture<Object> two =
          arriving(gathering(meeting.join(), 3, Meeting.LONG), 2, "c");
      assertThat(get(arriving(gathering(store0, 3, Meeting.LONG), 0, "a")))
          .isEqualTo(List.of("a", "b", "c"))
          .isEqualTo(get(one))
          .isEqualTo(get(two));
    }
  }

  /** It waits for a start, and is told at its deadline what became of the one before. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoComesTooLateIsToldWhatBecameOfTheStart(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Outcome.Failed why = new Outcome.Failed(Native.WL_TIMEOUT, "rank 1 was late", List.of(1));
      byte[] decision = Outcome.failed(UUID.randomUUID(), "arrive", why).toValues().get(0);
      meeting.join().hold("test/decision", decision, Meeting.LONG);
      Object late = get(arriving(gathering(meeting.join(), 2, MOMENT), 1, "b"));
      assertFailed(late, "rank 0 of 2 had not come to ");
      assertFailed(late, "; the start before has failed: rank 1 was late");
    }
  }

  /** Rank 1 is stopped behind its second word; rank 0 gives up, and starts anew. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aWordOfAnEarlierStartIsNotTakenForOneOfThis(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      CountDownLatch shared = new CountDownLatch(1);
      CountDownLatch stopped = new CountDownLatch(1);
      Store store0 = meeting.join();
      Store store1 =
          Hooked.before(
              meeting.join(),
              call -> {
                if (shared.getCount() == 0 && call.equals("awaitOther test/decision")) {
                  await(stopped);
                }
              });
      Gathering first0 = gathering(store0, 2, Meeting.LONG);
      Gathering first1 = gathering(store1, 2, Meeting.LONG);
      CompletableFuture<Object> arrived = arriving(first1, 1, "b");
      assertThat(heard(first0, "arrive", 0, "a")).isEqualTo(List.of("a", "b"));
      assertThat(get(arrived)).isEqualTo(List.of("a", "b"));
      byte[] arrival = store0.get("test/rank/1", Meeting.LONG).orElseThrow();
      shared.countDown();
      CompletableFuture<Object> sharing =
          beside(() -> heard(first1, "share", 1, "the first start's"));
      store0.awaitOther("test/rank/1", arrival, Meeting.LONG);
      first0.leave(List.of(0));

      Gathering second = gathering(store0, 2, MOMENT);
      Object told = get(arriving(second, 0, "a"));
      assertFailed(told, "rank 1 of 2 had not come");
      assertFailed(told, "what rank 1 said in another start");
      second.leave(List.of(0));

      // Another process has rank 1 by now, and rank 0 meets that.
      CompletableFuture<Object> one =
          arriving(gathering(meeting.join(), 2, Meeting.LONG), 1, "B");
      Gathering third = gathering(store0, 2, Meeting.LONG);
      assertThat(get(arriving(third, 0, "A"))).isEqualTo(List.of("A", "B"));
      assertThat(get(one)).isEqualTo(List.of("A", "B"));
      stopped.countDown();
      assertFailed(get(sharing), "rank 0 came to the start and left before all had met");
      first1.leave(List.of(1)); // and leaves to the other what that said
      assertThat(store0.get("test/rank/1", Meeting.LONG)).isPresent();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Rank 0 has heard rank 1's first process, and waits for rank 2. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aRankThatRestartsInAStartIsNotTakenForItsFirstProcess(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      CountDownLatch heard = new CountDownLatch(1);
      Store store0 =
          Hooked.before(
              meeting.join(),
              call -> {
                if (call.equals("awaitOther test/rank/2")) {
                  heard.countDown();
                }
              });
      Gathering rank0 = gathering(store0, 3, Meeting.LONG);
      CompletableFuture<Object> zero = arriving(rank0, 0, "a");
      Store killed = meeting.join();
      CompletableFuture<Object> first = arriving(gathering(killed, 3, Meeting.LONG), 1, "b");
      heard.await();
      killed.close();
      assertThat(get(first)).isInstanceOf(Failure.class);
      CompletableFuture<Object> again =
          arriving(gathering(meeting.join(), 3, Meeting.LONG), 1, "B");
      store0.await("test/rank/1", Meeting.LONG);
      CompletableFuture<Object> two =
          arriving(gathering(meeting.join(), 3, Meeting.LONG), 2, "c");
      assertThat(get(zero)).isEqualTo(List.of("a", "b", "c"));
      assertThat(get(two)).isEqualTo(List.of("a", "b", "c"));
      assertFailed(get(again), "another process has come to this start as rank 1 too");
      Failure.assertFails(
              Native.WL_PEER_LOST, () -> rank0.gather("share", own(0, "file"), null))
          .startsWith("rank 1 came to the start and left before all had met");
    }
  }

  /** What its process left is there still, as that is stopped. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroThatRestartsOpensAStartOfItsOwn(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Gathering stopped = gathering(meeting.join(), 2, Meeting.LONG);
      CompletableFuture<Object> before = arriving(stopped, 0, "stopped");
      Store observer = meeting.join();
      observer.await("test/rank/0", Meeting.LONG);
      byte[] open = observer.get("test/decision", Meeting.LONG).orElseThrow();
      CompletableFuture<Object> zero =
          arriving(gathering(meeting.join(), 2, Meeting.LONG), 0, "A");
      while (observer.get("test/decision", Meeting.LONG).filter(now -> !same(now, open)).isEmpty()) {
        Thread.onSpinWait();
      }
      CompletableFuture<Object> one =
          arriving(gathering(meeting.join(), 2, Meeting.LONG), 1, "B");
      assertThat(get(zero)).isEqualTo(List.of("A", "B")).isEqualTo(get(one));
      // Rank 1 never says anything in the other one, which looks whether it still is the start.
      assertFailed(get(before), "another process has come to this start as rank 0 too");
    }
  }

  private static boolean same(byte[] one, byte[] other) {
    return ByteBuffer.wrap(one).equals(ByteBuffer.wrap(other));
  }

  /**
   * Ranks come, leave, give up and are killed at random: whoever hears of a start hears the same as
   * all others of it.
   */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoMeetsHearsWhatAllOthersHear(Meeting.Kind kind) throws Exception {
    long seed = Long.getLong("windlass.seed", new Random().nextLong());
    System.out.println("whoMeetsHearsWhatAllOthersHear seed " + seed);
    try (Meeting meeting = new Meeting(kind)) {
      long endNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(700);
      List<CompletableFuture<List<List<String>>>> ranks = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        int rank = i;
        ranks.add(beside(() -> starts(meeting, rank, new Random(seed + rank), endNs)));
      }
      Map<String, List<String>> ofWord = new HashMap<>();
      for (CompletableFuture<List<List<String>>> rank : ranks) {
        for (List<String> heard : get(rank)) {
          for (String word : heard) {
            assertThat(ofWord.computeIfAbsent(word, any -> heard))
                .as("seed " + seed)
                .isEqualTo(heard);
          }
        }
      }
    }
  }

  /** What a rank heard in its starts. */
  private static List<List<String>> starts(
      Meeting meeting, int rank, Random random, long endNs) {
    List<List<String>> all = new ArrayList<>();
    Store store = meeting.join();
    for (int i = 0; System.nanoTime() < endNs; i++) {
      Gathering gathering = gathering(store, 3, Duration.ofMillis(1 + random.nextInt(60)));
      for (String step : List.of("arrive", "share")) {
        Object heard = heard(gathering, step, rank, step + " " + rank + " " + i);
        if (heard instanceof Failure) {
          break;
        }
        all.add(((List<?>) heard).stream().map(String::valueOf).toList());
      }
      if (random.nextInt(4) == 0) {
        store.close();
        store = meeting.join();
      } else {
        gathering.leave(List.of(rank));
      }
    }
    return all;
  }
}
