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
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Hooked;
import org.windlass.internal.store.Meeting;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.Store;

/** Two jobs on their way to one another at a store: who finds whom, and what is said otherwise. */
@Timeout(60)
class PairingTest {
  private static final Duration MOMENT = Duration.ofSeconds(1);
  private static final Start.Config OPTIONS = new Start.Config(1, 0, 0, 1, false);

  private static Announcement job(String name, String instance, String versions) {
    return new Announcement(versions, name, instance, 17, 2, "", OPTIONS, false);
  }

  private static Pairing pairing(Store store, Announcement own, Duration deadline) {
    return new Pairing(store, "policy", own, deadline, new Pairing.Holders());
  }

  private static Pairing pairing(Store store, String name, Duration deadline) {
    return pairing(store, job(name, name, "1"), deadline);
  }

  private static CompletableFuture<Pairing.Match> target(Store store, String name) {
    return CompletableFuture.supplyAsync(() -> pairing(store, name, Meeting.LONG).target());
  }

  private static Pairing.Match of(CompletableFuture<Pairing.Match> match) throws Exception {
    return match.get(20, TimeUnit.SECONDS);
  }

  private static boolean isPresent(Store store, Round.Presence job) {
    return Arrays.equals(store.get(job.key(), Meeting.LONG).orElse(null), job.value());
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aSourceFindsEachTargetOnce(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      CompletableFuture<Pairing.Match> a = target(meeting.join(), "a");
      CompletableFuture<Pairing.Match> b = target(meeting.join(), "b");
      Pairing.Match first = pairing(store, "source", Meeting.LONG).source("b");
      Pairing.Match second = pairing(store, "source", Meeting.LONG).source(null);
      assertThat(first.other().job()).isEqualTo("b");
      assertThat(second.other().job()).isEqualTo("a");
      assertThat(of(a).name()).isEqualTo(second.name()).isNotEqualTo(first.name());
      assertThat(of(b).name()).isEqualTo(first.name());
      assertThat(of(b).other()).isEqualTo(job("source", "source", "1"));
      Failure.assertFails(
              Native.WL_DEADLINE_EXCEEDED, () -> pairing(store, "source", MOMENT).source(null))
          .contains("no job receives it here that is not linked already, at the store at")
          .contains("see whether the other job runs");
      assertThat(pairing(store, "source", Meeting.LONG).open()).isEmpty();
    }
  }

  /** The one that has a link holds its place as long as its way into the store lasts. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aSecondSourceIsToldOfTheFirst(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      Store other = meeting.join();
      CompletableFuture<Pairing.Match> a = target(meeting.join(), "a");
      Pairing.Match match = pairing(store, "source", Meeting.LONG).source(null);
      of(a);
      Pairing.remove(store, match.own());
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> pairing(other, "second", MOMENT).source(null))
          .contains("another sends it already: job 'source' (2 ranks, rank 0 is process 17)")
          .contains("a pair has one source")
          .doesNotContain("see whether");
      byte[] said = other.get("pair/policy/source", Meeting.LONG).orElseThrow();
      store.close();
      other.awaitOther("pair/policy/source", said, Meeting.LONG);
      Announcement second = new Announcement("1", "second", "second", 18, 2, "", OPTIONS, false);
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> pairing(other, second, MOMENT).source(null))
          .contains("no job receives it here that is not linked already: job 'a' (2 ranks, rank 0")
          .contains("has met job 'source' (2 ranks, rank 0 is process 17)")
          .contains("a pair has one source")
          .doesNotContain("see whether");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aTargetThatWaitedInVainIsOpenNoMore(Meeting.Kind kind) {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> pairing(store, "a", MOMENT).target())
          .contains("no job sends it here yet");
      Store other = meeting.join();
      assertThat(pairing(other, "source", Meeting.LONG).open()).isEmpty();
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> pairing(store, "a", MOMENT).target())
          .contains("the source, job 'source' (2 ranks, rank 0 is process 17), has not answered");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aTargetWhoseThreadIsInterruptedIsOpenNoMore(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      CompletableFuture<Boolean> isInterrupted = new CompletableFuture<>();
      Thread waits =
          new Thread(
              () -> {
                Failure.assertFails(
                    Native.WL_ABORTED, () -> pairing(store, "a", Meeting.LONG).target());
                isInterrupted.complete(Thread.currentThread().isInterrupted());
              });
      waits.start();
      Store other = meeting.join();
      other.await("pair/policy/target/a", Meeting.LONG);
      waits.interrupt();
      assertThat(isInterrupted.get(20, TimeUnit.SECONDS)).isTrue();
      assertThat(other.keys("pair/policy/target/", Meeting.LONG)).isEmpty();
    }
  }

  /** The interrupt comes before it is told that it has come to be open. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aTargetThatIsInterruptedAsItOpensIsOpenNoMore(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store =
          Hooked.after(
              meeting.join(),
              call -> {
                if (call.equals("hold pair/policy/target/a")) {
                  throw new AbortedException("interrupted");
                }
              });
      Failure.assertFails(Native.WL_ABORTED, () -> pairing(store, "a", Meeting.LONG).target());
      Store other = meeting.join();
      assertThat(other.keys("pair/policy/target/", Meeting.LONG)).isEmpty();
      other.hold("pair/policy/target/a", new byte[] {1}, Meeting.LONG);
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> pairing(meeting.join(), "a", MOMENT).target());
      assertThat(other.keys("pair/policy/target/", Meeting.LONG)).hasSize(1); // another's stays
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoHasEndedIsInNobodysWay(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store before = meeting.join();
      Store store = meeting.join();
      Failure.assertFails(
          Native.WL_DEADLINE_EXCEEDED, () ->
              pairing(before, job("s", "1", "1"), MOMENT).source(null));
      before.hold("pair/policy/target/a", new byte[] {1, 2, 3}, Meeting.LONG);
      CompletableFuture<Pairing.Match> a = target(meeting.join(), "a");
      CompletableFuture<Pairing.Match> source =
          CompletableFuture.supplyAsync(
              () -> pairing(store, job("s", "2", "1"), Meeting.LONG).source(null));
      Thread.sleep(100);
      assertThat(List.of(a.isDone(), source.isDone())).containsOnly(false);
      before.close();
      assertThat(of(source).name()).isEqualTo(of(a).name());
      assertThat(of(a).other().instance()).isEqualTo("2");
    }
  }

  /** What each side waits for of the other is there as long as that may come, and no longer. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoGivesUpAMeetingRemovesItsPresenceKey(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      Store other = meeting.join();
      for (boolean isSourceFirst : new boolean[] {true, false}) {
        CompletableFuture<Pairing.Match> a = target(other, "a");
        Pairing.Match source = pairing(store, "source", Meeting.LONG).source(null);
        Pairing.Match target = of(a);
        assertThat(source.name()).isEqualTo(target.name());
        assertThat(isPresent(store, source.theirs())).isTrue();
        assertThat(isPresent(other, target.theirs())).isTrue();
        if (isSourceFirst) {
          Pairing.remove(store, source.own());
          assertThat(isPresent(other, target.theirs())).isFalse();
          assertThat(isPresent(store, source.theirs())).isTrue();
        }
        // The target is open anew, in its old place.
        Failure.assertFails(Native.WL_DEADLINE_EXCEEDED,
            () -> pairing(other, "a", MOMENT).target());
        assertThat(isPresent(store, source.theirs())).isFalse();
        Pairing.remove(other, target.own());
        Pairing.remove(store, source.own());
      }
      byte[] calls = other.get("pair/policy/calls", Meeting.LONG).orElseThrow();
      byte[] said = other.get("pair/policy/source", Meeting.LONG).orElseThrow();
      store.close();
      // What a member held goes once the store has noticed.
      other.awaitOther("pair/policy/calls", calls, Meeting.LONG);
      other.awaitOther("pair/policy/source", said, Meeting.LONG);
      assertThat(other.keys("", Meeting.LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aTargetThatIsAnsweredAsItGivesUpIsNotWaitedFor(Meeting.Kind kind) {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      Store other = meeting.join();
      Pairing.Match[] match = new Pairing.Match[1];
      Store late =
          (Store)
              Proxy.newProxyInstance(
                  Store.class.getClassLoader(),
                  new Class<?>[] {Store.class},
                  (proxy, method, arguments) -> {
                    if (!method.getName().equals("awaitOther")) {
                      return method.invoke(other, arguments);
                    }
                    match[0] = pairing(store, "source", Meeting.LONG).source(null);
                    Thread.sleep(MOMENT.toMillis());
                    throw new DeadlineExceededException("it took too long");
                  });
      Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> pairing(late, "a", MOMENT).target());
      assertThat(isPresent(store, match[0].theirs())).isFalse();
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whatNoJobSaysIsInNobodysWay(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      Store stranger = meeting.join();
      CompletableFuture<Pairing.Match> a = target(meeting.join(), "a");
      byte[] open = stranger.await("pair/policy/target/a", Meeting.LONG);
      for (String other : List.of("", "a/b", "\u0007")) {
        stranger.set("pair/policy/target/" + other, open, Meeting.LONG);
      }
      byte[] tooLong = ByteBuffer.allocate(16).putInt(Long.BYTES, Integer.MAX_VALUE).array();
      stranger.set("pair/policy/target/long", tooLong, Meeting.LONG);
      assertThat(pairing(store, "source", Meeting.LONG).open()).containsExactly("a");
      stranger.set("pair/policy/calls", new byte[] {1, 2, 3}, Meeting.LONG);
      CompletableFuture<Pairing.Match> b = target(meeting.join(), "b");
      Pairing.Match found = pairing(store, "source", Meeting.LONG).source("b");
      assertThat(found.name()).isEqualTo(of(b).name());
      found = pairing(store, "source", Meeting.LONG).source(null);
      assertThat(found.name()).isEqualTo(of(a).name());
    }
  }

  /** Wherever jobs that have met looked, but for the place that a source holds. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void garbageUnderAnyKeyOfAMeetingIsInNobodysWay(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Set<String> keys = ConcurrentHashMap.newKeySet();
      Consumer<String> note = call -> keys.add(call.substring(call.indexOf(' ') + 1));
      Store source = Hooked.before(meeting.join(), note);
      CompletableFuture<Pairing.Match> a = target(Hooked.before(meeting.join(), note), "a");
      Pairing.Match first = pairing(source, "source", Meeting.LONG).source(null);
      assertThat(of(a).name()).isEqualTo(first.name());
      keys.removeAll(List.of("", "pair/policy/source"));
      assertThat(keys).contains("pair/policy/calls", "pair/policy/target/a");
      Store stranger = meeting.join();
      keys.forEach(key -> stranger.set(key, new byte[] {1, 2, 3}, Meeting.LONG));
      CompletableFuture<Pairing.Match> b = target(meeting.join(), "b");
      Pairing.Match second = pairing(source, "source", Meeting.LONG).source(null);
      assertThat(second.other().job()).isEqualTo("b");
      assertThat(of(b).name()).isEqualTo(second.name()).isNotEqualTo(first.name());
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void bothSidesNameTheVersionsThatDiffer(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store = meeting.join();
      CompletableFuture<Throwable> target =
          CompletableFuture.supplyAsync(
              () ->
                  org.assertj.core.api.Assertions.catchThrowable(
                      () -> target(store, "a").join()));
      Store other = meeting.join();
      Failure.assertFails(
              Native.WL_MISMATCH,
              () -> pairing(other, job("s", "s", "windlass 2"), Meeting.LONG).source(null))
          .isEqualTo(
              "the other job has 1; this one has windlass 2; run both with one version of"
                  + " Windlass");
      assertThat(target.get(20, TimeUnit.SECONDS))
          .hasMessageContaining("the other job has windlass 2; this one has 1; run both");
    }
  }
}
