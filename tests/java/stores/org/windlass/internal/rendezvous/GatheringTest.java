// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Hooked;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.LocalStore;
import org.windlass.internal.store.Meeting;
import org.windlass.internal.store.Store;

/** Steps of ranks at a store: what all of them are told where one fails, goes or is late. */
@Timeout(60)
class GatheringTest {
  private static final Duration MOMENT = Duration.ofSeconds(1);

  private static Gathering gathering(Store store, int size, Duration deadline) {
    return new Gathering(store, "test/", null, size, deadline, Failure::make);
  }

  /** Two ranks, and each one's way into the store. */
  private record Two(Store store0, Store store1, Gathering rank0, Gathering rank1) {
    static Two of(Meeting meeting) {
      Store store0 = meeting.join();
      Store store1 = meeting.join();
      return new Two(
          store0,
          store1,
          gathering(store0, 2, Meeting.LONG),
          gathering(store1, 2, Meeting.LONG));
    }
  }

  private static Map<Integer, byte[]> own(int rank) {
    return Map.of(rank, new byte[] {(byte) rank});
  }

  private static CompletableFuture<Throwable> failing(ThrowingCallable call) {
    return CompletableFuture.supplyAsync(() -> catchThrowable(call));
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aFailureOfOneRankIsToldToAll(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Two two = Two.of(meeting);
      StartSteps.Refused refused = new StartSteps.Refused(Native.WL_RESOURCE, "no room");
      CompletableFuture<Throwable> other =
          CompletableFuture.supplyAsync(
              () -> catchThrowable(() -> two.rank1.gather("share", own(1), refused)));
      Throwable first = catchThrowable(() -> two.rank0.gather("share", own(0), null));
      assertThat(first).hasMessage("rank 1: no room");
      assertThat(other.get(20, TimeUnit.SECONDS)).hasMessage("rank 1: no room");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aRankThatGoesBetweenTwoStepsIsNamedAtOnce(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Two two = Two.of(meeting);
      CompletableFuture<List<byte[]>> said =
          CompletableFuture.supplyAsync(() -> two.rank1.gather("arrive", own(1), null));
      assertThat(two.rank0.gather("arrive", own(0), null)).hasSize(2);
      assertThat(said.get(20, TimeUnit.SECONDS)).containsExactly(new byte[] {0}, new byte[] {1});
      two.store1.close();
      Failure.assertFails(Native.WL_PEER_LOST, () -> two.rank0.gather("share", own(0), null))
          .startsWith("rank 1 came to the start and left before all had met");
    }
  }

  /** Such as one that finds no way to it. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aRankThatHasGoneIsNamedRatherThanOneThatCantGoOnWithoutIt(Meeting.Kind kind)
      throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store last = meeting.join();
      List<Gathering> ranks =
          List.of(
              gathering(meeting.join(), 3, Meeting.LONG),
              gathering(meeting.join(), 3, Meeting.LONG),
              gathering(last, 3, Meeting.LONG));
      List<CompletableFuture<Throwable>> arrivals = new ArrayList<>();
      for (int rank = 0; rank < 3; rank++) {
        int own = rank;
        arrivals.add(failing(() -> ranks.get(own).gather("arrive", own(own), null)));
      }
      for (CompletableFuture<Throwable> each : arrivals) {
        assertThat(each.get(20, TimeUnit.SECONDS)).isNull();
      }
      last.close();
      StartSteps.Refused refused = new StartSteps.Refused(Native.WL_UNSUPPORTED, "no way to it");
      CompletableFuture<Throwable> other =
          failing(() -> ranks.get(1).gather("attach", own(1), refused));
      String left = "rank 2 came to the start and left before all had met";
      Failure.assertFails(
              Native.WL_PEER_LOST, () -> ranks.get(0).gather("attach", own(0), null))
          .startsWith(left);
      assertThat(other.get(20, TimeUnit.SECONDS)).hasMessageStartingWith(left);
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void ranksThatCountOthersAreToldAtOnce(Meeting.Kind kind) throws Exception {
    String said = "rank 0 was started as one of 3 ranks, rank 2 as one of 4; give all ranks one";
    for (int first : new int[] {0, 2}) {
      try (Meeting meeting = new Meeting(kind)) {
        Store store0 = meeting.join();
        Store store1 = meeting.join();
        Store store2 = meeting.join();
        Gathering rank0 = gathering(store0, 3, Meeting.LONG);
        Gathering rank1 = gathering(store1, 3, Meeting.LONG);
        Gathering rank2 = gathering(store2, 4, Meeting.LONG);
        CompletableFuture<Throwable> other =
            failing(() -> (first == 0 ? rank0 : rank2).gather("arrive", own(first), null));
        CompletableFuture<Throwable> next = failing(() -> rank1.gather("arrive", own(1), null));
        store0.await("test/rank/" + first, Meeting.LONG);
        store0.await("test/rank/1", Meeting.LONG);
        int last = 2 - first;
        Throwable second =
            catchThrowable(
                () -> (last == 0 ? rank0 : rank2).gather("arrive", own(last), null));
        assertThat(second).hasMessageStartingWith(said);
        assertThat(other.get(20, TimeUnit.SECONDS)).hasMessageStartingWith(said);
        assertThat(next.get(20, TimeUnit.SECONDS)).hasMessageStartingWith(said);
      }
    }
  }

  /** What it has been seen to be, and has come to something else before one takes part. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoSawAStartOpenIsToldWhatItCameTo(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store0 = meeting.join();
      Store store1 = meeting.join();
      Gathering rank0 = gathering(store0, 2, Meeting.LONG);
      CompletableFuture<Throwable> first = failing(() -> rank0.gather("arrive", own(0), null));
      byte[] open = Gathering.awaitOpen(store1, "test/", Meeting.LONG);
      Gathering other = gathering(meeting.join(), 3, Meeting.LONG);
      other.joining(open);
      Failure.assertFails(Native.WL_MISMATCH, () -> other.gather("arrive", own(1), null))
          .startsWith("rank 0 was started as one of 2 ranks, rank 1 as one of 3");
      Gathering rank1 = gathering(store1, 2, Meeting.LONG);
      rank1.joining(open);
      Failure.assertFails(Native.WL_MISMATCH, () -> rank1.gather("arrive", own(1), null))
          .startsWith("rank 0 was started as one of 2 ranks, rank 1 as one of 3");
      assertThat(first.get(20, TimeUnit.SECONDS)).hasMessageContaining("as one of 3");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whatAnotherDecidesRankZeroIsToldBeforeItsOwnDeadline(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Gathering rank0 = gathering(meeting.join(), 3, Meeting.LONG);
      Gathering rank1 = gathering(meeting.join(), 3, MOMENT);
      CompletableFuture<Throwable> first = failing(() -> rank0.gather("arrive", own(0), null));
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("arrive", own(1), null))
          .startsWith("rank 2 of 3 had not come to ");
      assertThat(first.get(20, TimeUnit.SECONDS))
          .hasMessageStartingWith("rank 2 of 3 had not come to ");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aRankThatStopsBetweenTwoStepsIsNamedAsOneThatCame(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store others = meeting.join();
      UUID start = UUID.randomUUID();
      others.hold("test/decision", Outcome.open(start, 3).toValues().get(0), Meeting.LONG);
      for (int rank : new int[] {0, 2}) {
        String step = rank == 0 ? "share" : "arrive";
        Word word = new Word(start, UUID.randomUUID(), step, new byte[0], null);
        others.hold("test/rank/" + rank, word.toBytes(), Meeting.LONG);
      }
      Gathering rank1 = gathering(meeting.join(), 3, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("share", own(1), null))
          .startsWith("rank 2 of 3 had come to ")
          .contains(" and not gone on with the others when the deadline passed; see whether their")
          .doesNotContain("share");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whoWillNotComeIsNotWaitedFor(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store other = meeting.join();
      Sign sign = new Sign("sign", new byte[] {1});
      other.hold(sign.key(), sign.value(), Meeting.LONG);
      for (int rank : new int[] {0, 1}) {
        Gathering ranks =
            new Gathering(meeting.join(), "of" + rank + "/", sign, 3, Meeting.LONG, Failure::make);
        CompletableFuture<Throwable> gathers =
            CompletableFuture.supplyAsync(
                () -> catchThrowable(() -> ranks.gather("arrive", own(rank), null)));
        Thread.sleep(300);
        assertThat(gathers).isNotDone();
        if (rank == 0) {
          sign.takeBack(other);
        } else {
          other.set(sign.key(), new byte[] {2}, Meeting.LONG); // they have met anew
        }
        assertThat(gathers.get(20, TimeUnit.SECONDS)).hasMessageContaining("before they came");
        other.hold(sign.key(), sign.value(), Meeting.LONG);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whereRankZeroDoesNotComeNothingIsLeft(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store observer = meeting.join();
      Gathering rank1 = gathering(meeting.join(), 3, MOMENT);
      Gathering rank2 = gathering(meeting.join(), 3, MOMENT);
      CompletableFuture<Throwable> late = failing(() -> rank2.gather("arrive", own(2), null));
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("arrive", own(1), null))
          .contains(" of 3 had not come to ");
      assertThat(late.get(20, TimeUnit.SECONDS)).hasMessageContaining(" of 3 had not come to ");
      rank1.leave(List.of(1));
      assertThat(observer.keys("test/", Meeting.LONG)).containsExactly("test/rank/2");
      rank2.leave(List.of(2));
      assertThat(observer.keys("test/", Meeting.LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroStaysUntilOthersHaveReadWhy(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Two two = Two.of(meeting);
      arrive(two);
      CompletableFuture<Void> end = CompletableFuture.runAsync(() -> two.rank0.fail(List.of(0)));
      Thread.sleep(100);
      assertThat(end).isNotDone(); // rank 1 has not left yet
      two.store1.close();
      end.get(20, TimeUnit.SECONDS);
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroStaysForThoseWhoCameBehindOneThatDidNot(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store2 = meeting.join();
      Gathering rank2 = gathering(store2, 3, Meeting.LONG);
      CompletableFuture<Throwable> told = failing(() -> rank2.gather("arrive", own(2), null));
      store2.await("test/rank/2", Meeting.LONG);
      Gathering rank0 = gathering(meeting.join(), 3, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank0.gather("arrive", own(0), null))
          .startsWith("rank 1 of 3 had not come to ");
      assertThat(told.get(20, TimeUnit.SECONDS)).hasMessageStartingWith("rank 1 of 3 had not come");
      CompletableFuture<Void> end = CompletableFuture.runAsync(() -> rank0.fail(List.of(0)));
      Thread.sleep(100);
      assertThat(end).isNotDone(); // rank 2 has not left yet
      store2.close();
      end.get(20, TimeUnit.SECONDS);
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroThatComesAndSaysNothingMoreIsNamed(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store0 = meeting.join();
      UUID start = UUID.randomUUID();
      store0.hold("test/decision", Outcome.open(start, 2).toValues().get(0), Meeting.LONG);
      Word word = new Word(start, UUID.randomUUID(), "arrive", new byte[0], null);
      store0.hold("test/rank/0", word.toBytes(), Meeting.LONG);
      Gathering rank1 = gathering(meeting.join(), 2, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("arrive", own(1), null))
          .startsWith("rank 0 of 2 came to ")
          .contains("had not let the others go on");
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aRankThatDoesNotGoHoldsUpNoFailure(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Two two = Two.of(meeting);
      arrive(two);
      CompletableFuture.runAsync(() -> two.rank0.fail(List.of(0))).get(20, TimeUnit.SECONDS);
    }
  }

  /** Together more than {@link Limits#VALUE}, which each alone is not. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whatIsTooLongForOneValueIsToldInSeveral(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store observer = meeting.join();
      Gathering ranks0 = gathering(meeting.join(), 3, Meeting.LONG);
      Gathering rank2 = gathering(meeting.join(), 3, Meeting.LONG);
      for (int length : new int[] {300 << 10, 0, 200 << 10}) {
        byte[][] each = new byte[3][length];
        for (int rank = 0; rank < 3; rank++) {
          new Random(rank + length).nextBytes(each[rank]);
        }
        String step = "step " + length;
        CompletableFuture<List<byte[]>> heard =
            CompletableFuture.supplyAsync(
                () -> rank2.gather(step, Map.of(2, each[2]), null));
        assertThat(ranks0.gather(step, Map.of(0, each[0], 1, each[1]), null))
            .containsExactly(each);
        assertThat(heard.get(20, TimeUnit.SECONDS)).containsExactly(each);
      }
      rank2.leave(List.of(2));
      ranks0.leave(List.of(0, 1));
      assertThat(observer.keys("test/", Meeting.LONG)).isEmpty();
    }
  }

  @Test
  void theArrivalsOfAsManyRanksAsThereMayBeAreTold() throws Exception {
    ProcessName process = new ProcessName(4711, 123456, 4026531836L);
    String options = new Start.Config(0, 0, 0, 60_000_000_000L, false).toString();
    String host = UUID.randomUUID().toString();
    Map<Integer, byte[]> said = new LinkedHashMap<>();
    for (int rank = 0; rank < Native.WL_MAX_RANKS; rank++) {
      Arrival arrival =
          new Arrival(rank, "0.1.0", "sim", host, "node-7", "", process, 2, "0-1", options);
      said.put(rank, arrival.toBytes());
    }
    try (LocalStore store = new LocalStore(Failure::make)) {
      Gathering all = gathering(store, said.size(), Meeting.LONG);
      assertThat(all.gather("arrive", said, null)).containsExactlyElementsOf(said.values());
    }
  }

  private static void arrive(Two two) throws Exception {
    CompletableFuture<List<byte[]>> other =
        CompletableFuture.supplyAsync(() -> two.rank1.gather("arrive", own(1), null));
    two.rank0.gather("arrive", own(0), null);
    other.get(20, TimeUnit.SECONDS);
  }

  /** It comes between the end of rank 1's wait for it and what rank 1 then decides. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroMayComeAsTheDeadlinePasses(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store0 = meeting.join();
      byte[] open = Outcome.open(UUID.randomUUID(), 3).toValues().get(0);
      Store store1 =
          Hooked.before(
              meeting.join(),
              call -> {
                if (call.equals("get test/rank/0")) {
                  store0.hold("test/decision", open, MOMENT); // as rank 0 does first
                }
              });
      Gathering rank1 = gathering(store1, 3, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("arrive", own(1), null))
          .contains("had not come to");
    }
  }
}
