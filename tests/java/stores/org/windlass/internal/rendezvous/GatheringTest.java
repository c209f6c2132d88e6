// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.internal.Native;

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

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void aFailureOfOneRankIsToldToAll(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Two two = Two.of(meeting);
      Gathering.Refused refused = new Gathering.Refused(Native.WL_RESOURCE, "no room");
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
          .startsWith("rank 1 came to the start and left before share");
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
  void rankZeroThatComesLateIsToldSo(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store observer = meeting.join();
      Gathering rank1 = gathering(meeting.join(), 3, MOMENT);
      Gathering rank2 = gathering(meeting.join(), 3, MOMENT);
      List<CompletableFuture<Throwable>> early =
          List.of(
              CompletableFuture.supplyAsync(
                  () -> catchThrowable(() -> rank1.gather("arrive", own(1), null))),
              CompletableFuture.supplyAsync(
                  () -> catchThrowable(() -> rank2.gather("arrive", own(2), null))));
      for (CompletableFuture<Throwable> each : early) {
        assertThat(each.get(20, TimeUnit.SECONDS))
            .hasMessageContaining("of 3 had not come to");
      }
      Gathering rank0 = gathering(meeting.join(), 3, Meeting.LONG);
      assertThat(
              CompletableFuture.supplyAsync(
                      () -> catchThrowable(() -> rank0.gather("arrive", own(0), null)))
                  .get(20, TimeUnit.SECONDS))
          .hasMessageContaining("of 3 had not come to");
      rank1.leave(List.of(1));
      rank2.leave(List.of(2));
      assertThat(observer.keys("test/", Meeting.LONG)).hasSize(2); // rank 0's own, and what it read
      rank0.leave(List.of(0));
      assertThat(observer.keys("test/", Meeting.LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void whereRankZeroDoesNotComeNothingIsLeft(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store observer = meeting.join();
      Gathering rank1 = gathering(meeting.join(), 3, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("arrive", own(1), null));
      Gathering rank2 = gathering(meeting.join(), 3, Meeting.LONG);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank2.gather("arrive", own(2), null));
      rank1.leave(List.of(1));
      assertThat(observer.keys("test/", Meeting.LONG)).hasSize(2);
      rank2.leave(List.of(2));
      assertThat(observer.keys("test/", Meeting.LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroStaysUntilOthersHaveReadWhy(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Two two = Two.of(meeting);
      two.store1.hold("test/rank/1", said("arrive"), Meeting.LONG);
      two.rank0.gather("arrive", own(0), null);
      CompletableFuture<Void> end = CompletableFuture.runAsync(() -> two.rank0.fail(List.of(0)));
      Thread.sleep(100);
      assertThat(end).isNotDone(); // rank 1 has not read yet
      two.store1.close();
      end.get(20, TimeUnit.SECONDS);
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroStaysForThoseWhoCameBehindOneThatDidNot(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store2 = meeting.join();
      store2.hold("test/rank/2", said("arrive"), Meeting.LONG);
      Gathering rank0 = gathering(meeting.join(), 3, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank0.gather("arrive", own(0), null))
          .startsWith("rank 1 of 3 had not come to ");
      CompletableFuture<Void> end = CompletableFuture.runAsync(() -> rank0.fail(List.of(0)));
      Thread.sleep(100);
      assertThat(end).isNotDone(); // rank 2 has not read yet
      store2.close();
      end.get(20, TimeUnit.SECONDS);
    }
  }

  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroThatComesAndSaysNothingMoreIsNamed(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store0 = meeting.join();
      store0.hold("test/rank/0", said("arrive"), Meeting.LONG);
      store0.hold("test/decision", new byte[2], Meeting.LONG); // open
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
      two.store1.hold("test/rank/1", said("arrive"), Meeting.LONG);
      two.rank0.gather("arrive", own(0), null);
      CompletableFuture.runAsync(() -> two.rank0.fail(List.of(0))).get(20, TimeUnit.SECONDS);
    }
  }

  /** What a rank says that says nothing. */
  private static byte[] said(String step) {
    byte[] bytes = new byte[2 + step.length() + 1 + Integer.BYTES];
    bytes[1] = (byte) step.length();
    for (int i = 0; i < step.length(); i++) {
      bytes[2 + i] = (byte) step.charAt(i);
    }
    return bytes;
  }

  /** It comes between the end of rank 1's wait for it and what rank 1 then decides. */
  @ParameterizedTest
  @EnumSource(Meeting.Kind.class)
  void rankZeroMayComeAsTheDeadlinePasses(Meeting.Kind kind) throws Exception {
    try (Meeting meeting = new Meeting(kind)) {
      Store store0 = meeting.join();
      Store own = meeting.join();
      Store store1 =
          (Store)
              Proxy.newProxyInstance(
                  Store.class.getClassLoader(),
                  new Class<?>[] {Store.class},
                  (proxy, method, arguments) -> {
                    if (method.getName().equals("get") && arguments[0].equals("test/rank/0")) {
                      store0.hold("test/decision", new byte[2], MOMENT); // as rank 0 does first
                    }
                    try {
                      return method.invoke(own, arguments);
                    } catch (InvocationTargetException e) {
                      throw e.getCause();
                    }
                  });
      Gathering rank1 = gathering(store1, 3, MOMENT);
      Failure.assertFails(Native.WL_TIMEOUT, () -> rank1.gather("arrive", own(1), null))
          .contains("had not come to");
    }
  }
}
