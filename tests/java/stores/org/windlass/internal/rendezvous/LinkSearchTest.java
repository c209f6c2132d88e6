// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Hooked;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.TestStore;

/** Two jobs on their way to one another at a store: who finds whom, and what is said otherwise. */
@Timeout(60)
class LinkSearchTest {
  private static final Duration MOMENT = Duration.ofSeconds(1);
  private static final Start.Config OPTIONS = new Start.Config(1, 0, 0, 1, false);

  private static Announcement job(String name, String instance, String versions) {
    return new Announcement(versions, name, instance, 17, 2, "", OPTIONS, false);
  }

  private static LinkSearch search(Store store, Announcement own, Duration deadline) {
    Deadline until = Deadline.of(deadline);
    return new LinkSearch(store, "policy", own, until, new LinkSearch.Holders());
  }

  private static LinkSearch search(Store store, String name, Duration deadline) {
    return search(store, job(name, name, "1"), deadline);
  }

  private static CompletableFuture<LinkSearch.Match> target(Store store, String name) {
    return CompletableFuture.supplyAsync(() -> search(store, name, TestStore.LONG).target());
  }

  private static LinkSearch.Match of(CompletableFuture<LinkSearch.Match> match) throws Exception {
    return match.get(20, TimeUnit.SECONDS);
  }

  private static boolean isPresent(Store store, Presence job) {
    return Arrays.equals(store.get(job.key(), TestStore.LONG).orElse(null), job.value());
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aSourceFindsEachTargetOnce(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      CompletableFuture<LinkSearch.Match> a = target(testStore.join(), "a");
      CompletableFuture<LinkSearch.Match> b = target(testStore.join(), "b");
      LinkSearch.Match first = search(store, "source", TestStore.LONG).source("b");
      LinkSearch.Match second = search(store, "source", TestStore.LONG).source(null);
      assertThat(first.other().job()).isEqualTo("b");
      assertThat(second.other().job()).isEqualTo("a");
      assertThat(of(a).name()).isEqualTo(second.name()).isNotEqualTo(first.name());
      assertThat(of(b).name()).isEqualTo(first.name());
      assertThat(of(b).other()).isEqualTo(job("source", "source", "1"));
      Failure.assertFails(
              Native.WL_DEADLINE_EXCEEDED, () -> search(store, "source", MOMENT).source(null))
          .contains("no job receives it here that is not linked yet, at the store at")
          .contains("check that the other job runs");
      assertThat(search(store, "source", TestStore.LONG).open()).isEmpty();
    }
  }

  /** The one that has a link holds its place as long as its way into the store lasts. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aSecondSourceIsToldOfTheFirst(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      Store other = testStore.join();
      CompletableFuture<LinkSearch.Match> a = target(testStore.join(), "a");
      LinkSearch.Match match = search(store, "source", TestStore.LONG).source(null);
      of(a);
      LinkSearch.remove(store, match.own());
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> search(other, "second", MOMENT).source(null))
          .contains("another sends it already: job 'source' (2 ranks, rank 0 is process 17)")
          .contains("a link name has one source")
          .doesNotContain("see whether");
      byte[] said = other.get("link/policy/source", TestStore.LONG).orElseThrow();
      store.close();
      other.awaitOther("link/policy/source", said, TestStore.LONG);
      Announcement second = new Announcement("1", "second", "second", 18, 2, "", OPTIONS, false);
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> search(other, second, MOMENT).source(null))
          .contains("no job receives it here that is not linked yet: job 'a' (2 ranks, rank 0")
          .contains("has connected to job 'source' (2 ranks, rank 0 is process 17)")
          .contains("a link name has one source")
          .doesNotContain("see whether");
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aTargetThatWaitedInVainIsOpenNoMore(TestStore.Kind kind) {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> search(store, "a", MOMENT).target())
          .contains("no job sends it here yet");
      Store other = testStore.join();
      assertThat(search(other, "source", TestStore.LONG).open()).isEmpty();
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> search(store, "a", MOMENT).target())
          .contains("the source, job 'source' (2 ranks, rank 0 is process 17), has not answered");
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aTargetWhoseThreadIsInterruptedIsOpenNoMore(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      CompletableFuture<Boolean> isInterrupted = new CompletableFuture<>();
      Thread waits =
          new Thread(
              () -> {
                Failure.assertFails(
                    Native.WL_ABORTED, () -> search(store, "a", TestStore.LONG).target());
                isInterrupted.complete(Thread.currentThread().isInterrupted());
              });
      waits.start();
      Store other = testStore.join();
      other.awaitOther("link/policy/target/a", null, TestStore.LONG).orElseThrow();
      waits.interrupt();
      assertThat(isInterrupted.get(20, TimeUnit.SECONDS)).isTrue();
      assertThat(other.keys("link/policy/target/", TestStore.LONG)).isEmpty();
    }
  }

  /** The interrupt comes before it is told that it has come to be open. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aTargetThatIsInterruptedAsItOpensIsOpenNoMore(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store =
          Hooked.after(
              testStore.join(),
              call -> {
                if (call.equals("hold link/policy/target/a")) {
                  throw new AbortedException("interrupted");
                }
              });
      Failure.assertFails(Native.WL_ABORTED, () -> search(store, "a", TestStore.LONG).target());
      Store other = testStore.join();
      assertThat(other.keys("link/policy/target/", TestStore.LONG)).isEmpty();
      other.hold("link/policy/target/a", new byte[] {1}, TestStore.LONG);
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> search(testStore.join(), "a", MOMENT).target());
      assertThat(other.keys("link/policy/target/", TestStore.LONG)).hasSize(1); // another's stays
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void whoHasEndedIsInNobodysWay(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store before = testStore.join();
      Store store = testStore.join();
      Failure.assertFails(
          Native.WL_DEADLINE_EXCEEDED, () ->
              search(before, job("s", "1", "1"), MOMENT).source(null));
      before.hold("link/policy/target/a", new byte[] {1, 2, 3}, TestStore.LONG);
      CompletableFuture<LinkSearch.Match> a = target(testStore.join(), "a");
      CompletableFuture<LinkSearch.Match> source =
          CompletableFuture.supplyAsync(
              () -> search(store, job("s", "2", "1"), TestStore.LONG).source(null));
      Thread.sleep(100);
      assertThat(List.of(a.isDone(), source.isDone())).containsOnly(false);
      before.close();
      assertThat(of(source).name()).isEqualTo(of(a).name());
      assertThat(of(a).other().instance()).isEqualTo("2");
    }
  }

  /** What each side waits for of the other is there as long as that may come, and no longer. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void whoGivesUpARendezvousRemovesItsPresenceKey(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      Store other = testStore.join();
      for (boolean isSourceFirst : new boolean[] {true, false}) {
        CompletableFuture<LinkSearch.Match> a = target(other, "a");
        LinkSearch.Match source = search(store, "source", TestStore.LONG).source(null);
        LinkSearch.Match target = of(a);
        assertThat(source.name()).isEqualTo(target.name());
        assertThat(isPresent(store, source.theirs())).isTrue();
        assertThat(isPresent(other, target.theirs())).isTrue();
        if (isSourceFirst) {
          LinkSearch.remove(store, source.own());
          assertThat(isPresent(other, target.theirs())).isFalse();
          assertThat(isPresent(store, source.theirs())).isTrue();
        }
        // The target is open anew, in its old place.
        Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
            () -> search(other, "a", MOMENT).target());
        assertThat(isPresent(store, source.theirs())).isFalse();
        LinkSearch.remove(other, target.own());
        LinkSearch.remove(store, source.own());
      }
      byte[] calls = other.get("link/policy/calls", TestStore.LONG).orElseThrow();
      byte[] said = other.get("link/policy/source", TestStore.LONG).orElseThrow();
      store.close();
      // What a member held goes once the store has noticed.
      other.awaitOther("link/policy/calls", calls, TestStore.LONG);
      other.awaitOther("link/policy/source", said, TestStore.LONG);
      assertThat(other.keys("", TestStore.LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aTargetThatIsAnsweredAsItGivesUpIsNotWaitedFor(TestStore.Kind kind) {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      Store other = testStore.join();
      LinkSearch.Match[] match = new LinkSearch.Match[1];
      Store late =
          (Store)
              Proxy.newProxyInstance(
                  Store.class.getClassLoader(),
                  new Class<?>[] {Store.class},
                  (proxy, method, arguments) -> {
                    if (!method.getName().equals("awaitOther")) {
                      return method.invoke(other, arguments);
                    }
                    match[0] = search(store, "source", TestStore.LONG).source(null);
                    Thread.sleep(MOMENT.toMillis());
                    throw new DeadlineExceededException("it took too long");
                  });
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> search(late, "a", MOMENT).target());
      assertThat(isPresent(store, match[0].theirs())).isFalse();
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void whatNoJobSaysIsInNobodysWay(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      Store stranger = testStore.join();
      CompletableFuture<LinkSearch.Match> a = target(testStore.join(), "a");
      byte[] open = stranger.awaitOther("link/policy/target/a", null, TestStore.LONG).orElseThrow();
      for (String other : List.of("", "a/b", "\u0007")) {
        stranger.set("link/policy/target/" + other, open, TestStore.LONG);
      }
      byte[] tooLong = ByteBuffer.allocate(16).putInt(Long.BYTES, Integer.MAX_VALUE).array();
      stranger.set("link/policy/target/long", tooLong, TestStore.LONG);
      assertThat(search(store, "source", TestStore.LONG).open()).containsExactly("a");
      stranger.set("link/policy/calls", new byte[] {1, 2, 3}, TestStore.LONG);
      CompletableFuture<LinkSearch.Match> b = target(testStore.join(), "b");
      LinkSearch.Match found = search(store, "source", TestStore.LONG).source("b");
      assertThat(found.name()).isEqualTo(of(b).name());
      found = search(store, "source", TestStore.LONG).source(null);
      assertThat(found.name()).isEqualTo(of(a).name());
    }
  }

  /** Wherever jobs that have connected looked, but for the place that a source holds. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void garbageUnderAnyKeyOfARendezvousIsInNobodysWay(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Set<String> keys = ConcurrentHashMap.newKeySet();
      Consumer<String> note = call -> keys.add(call.substring(call.indexOf(' ') + 1));
      Store source = Hooked.before(testStore.join(), note);
      CompletableFuture<LinkSearch.Match> a = target(Hooked.before(testStore.join(), note), "a");
      LinkSearch.Match first = search(source, "source", TestStore.LONG).source(null);
      assertThat(of(a).name()).isEqualTo(first.name());
      keys.removeAll(List.of("", "link/policy/source"));
      assertThat(keys).contains("link/policy/calls", "link/policy/target/a");
      Store stranger = testStore.join();
      keys.forEach(key -> stranger.set(key, new byte[] {1, 2, 3}, TestStore.LONG));
      CompletableFuture<LinkSearch.Match> b = target(testStore.join(), "b");
      LinkSearch.Match second = search(source, "source", TestStore.LONG).source(null);
      assertThat(second.other().job()).isEqualTo("b");
      assertThat(of(b).name()).isEqualTo(second.name()).isNotEqualTo(first.name());
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void bothSidesNameTheVersionsThatDiffer(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      CompletableFuture<Throwable> target =
          CompletableFuture.supplyAsync(
              () ->
                  org.assertj.core.api.Assertions.catchThrowable(
                      () -> target(store, "a").join()));
      Store other = testStore.join();
      Failure.assertFails(
              Native.WL_MISMATCH,
              () -> search(other, job("s", "s", "windlass 2"), TestStore.LONG).source(null))
          .isEqualTo(
              "the other job has 1; this one has windlass 2; run both with one version of"
                  + " Windlass");
      assertThat(target.get(20, TimeUnit.SECONDS))
          .hasMessageContaining("the other job has windlass 2; this one has 1; run both");
    }
  }
}
