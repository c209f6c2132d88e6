// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.TestStore;

/** The steps of ranks at a store: what all of them hear if one fails, goes or is late. */
@Timeout(60)
class StartStepsTest {
  private static final Duration MOMENT = Duration.ofSeconds(1);

  /** The steps of the ranks of one process. */
  private record Process(Store store, StoreAllGather all, StartSteps steps) {
    static Process of(Store store, List<Integer> own, int size, Duration deadline) {
      return of(store, own, size, null, deadline);
    }

    static Process of(
        Store store, List<Integer> own, int size, Presence others, Duration deadline) {
      StoreAllGather all = new StoreAllGather(store, "test", size, others);
      Deadline until = Deadline.of(deadline);
      return new Process(
          store, all, new StartSteps(all, own, size, until));
    }

    List<byte[]> say(String step, int value) {
      return steps.gather(step, new byte[] {(byte) value});
    }

    void refuse(String step, int code, String why) {
      steps.gather(
          step,
          () -> {
            throw WindlassException.of(code, why, List.of());
          });
    }
  }

  private static List<Process> processes(TestStore testStore, int size, Duration deadline) {
    return IntStream.range(0, size)
        .mapToObj(rank -> Process.of(testStore.join(), List.of(rank), size, deadline))
        .toList();
  }

  private static CompletableFuture<Throwable> failing(ThrowingCallable call) {
    return CompletableFuture.supplyAsync(() -> catchThrowable(call), task -> new Thread(task).start());
  }

  private static Throwable get(CompletableFuture<Throwable> call) throws Exception {
    return call.get(30, TimeUnit.SECONDS);
  }

  /** What each of them throws, if all of some ranks say something. */
  private static List<Throwable> all(List<Process> processes, String step) throws Exception {
    List<CompletableFuture<Throwable>> calls = new ArrayList<>();
    for (int i = 0; i < processes.size(); i++) {
      int value = i;
      calls.add(failing(() -> processes.get(value).say(step, value)));
    }
    List<Throwable> failures = new ArrayList<>();
    for (CompletableFuture<Throwable> call : calls) {
      failures.add(get(call));
    }
    return failures;
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aFailureOfOneRankIsToldToAll(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      List<Process> two = processes(testStore, 2, TestStore.LONG);
      CompletableFuture<Throwable> other =
          failing(() -> two.get(1).refuse("share", Native.WL_RESOURCE, "no room"));
      Failure.assertFails(Native.WL_RESOURCE, () -> two.get(0).say("share", 0))
          .isEqualTo("rank 1: no room");
      assertThat(get(other)).hasMessage("rank 1: no room");
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aRankThatGoesBetweenTwoStepsIsNamedToAll(TestStore.Kind kind) throws Exception {
    String left = "rank 2 joined the start and left before all ranks had joined";
    for (boolean quits : new boolean[] {false, true}) {
      try (TestStore testStore = new TestStore(kind)) {
        List<Process> three = processes(testStore, 3, TestStore.LONG);
        assertThat(all(three, "arrive")).containsOnlyNulls();
        if (quits) {
          three.get(2).all.quit();
        } else {
          three.get(2).store.close();
        }
        CompletableFuture<Throwable> other =
            failing(() -> three.get(1).refuse("share", Native.WL_UNSUPPORTED, "no way to it"));
        Failure.assertFails(Native.WL_PEER_LOST, () -> three.get(0).say("share", 0))
            .startsWith(left);
        assertThat(get(other)).hasMessageStartingWith(left);
      }
    }
  }

  /** Its process was started again before all had come. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aRankThatLeavesTheFirstStepMayComeAgain(TestStore.Kind kind) throws Exception {
    for (boolean quits : new boolean[] {false, true}) {
      try (TestStore testStore = new TestStore(kind)) {
        Process killed = Process.of(testStore.join(), List.of(1), 3, TestStore.LONG);
        CompletableFuture<Throwable> first = failing(() -> killed.say("arrive", 1));
        Thread.sleep(200);
        if (quits) {
          killed.all.quit();
        }
        killed.store.close();
        assertThat(get(first)).isInstanceOf(WindlassException.class);
        assertThat(all(processes(testStore, 3, TestStore.LONG), "arrive")).containsOnlyNulls();
      }
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void ranksThatCountOthersAreToldAtOnce(TestStore.Kind kind) throws Exception {
    for (int first : new int[] {0, 2}) {
      try (TestStore testStore = new TestStore(kind)) {
        int last = 2 - first;
        Process[] ranks = new Process[3];
        for (int rank : new int[] {0, 2}) {
          ranks[rank] =
              Process.of(testStore.join(), List.of(rank), rank == 2 ? 4 : 3, TestStore.LONG);
        }
        CompletableFuture<Throwable> one = failing(() -> ranks[first].say("arrive", first));
        Thread.sleep(100);
        CompletableFuture<Throwable> two = failing(() -> ranks[last].say("arrive", last));
        for (CompletableFuture<Throwable> each : List.of(one, two)) {
          assertThat(get(each))
              .hasMessageStartingWith("rank 0 was started as one of 3 ranks, rank 2 as one of 4;");
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void theFirstDeadlineIsToldToAll(TestStore.Kind kind) throws Exception {
    for (int hasty : new int[] {0, 1}) {
      try (TestStore testStore = new TestStore(kind)) {
        Process[] ranks = new Process[2];
        for (int rank = 0; rank < 2; rank++) {
          ranks[rank] =
              Process.of(
                  testStore.join(), List.of(rank), 3, rank == hasty ? MOMENT : TestStore.LONG);
        }
        CompletableFuture<Throwable> other =
            failing(() -> ranks[1 - hasty].say("arrive", 1 - hasty));
        Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> ranks[hasty].say("arrive", hasty))
            .startsWith("rank 2 of 3 had not joined at ")
            .contains(" when the deadline passed; see why they did not start");
        assertThat(get(other)).hasMessageStartingWith("rank 2 of 3 had not joined at ");
      }
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aRankThatStopsBetweenTwoStepsIsNamedAsOneThatCame(TestStore.Kind kind) throws Exception {
    for (int stopped : new int[] {1, 0}) {
      try (TestStore testStore = new TestStore(kind)) {
        List<Process> two = processes(testStore, 2, Duration.ofSeconds(2));
        assertThat(all(two, "arrive")).containsOnlyNulls();
        int other = 1 - stopped;
        Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> two.get(other).say("share", other))
            .startsWith("rank " + stopped + " of 2 had joined at ")
            .contains(", but not continued with the others when the deadline passed; see whether their")
            .doesNotContain("share");
      }
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void whoWillNotComeIsNotWaitedFor(TestStore.Kind kind) throws Exception {
    for (int rank : new int[] {0, 1}) {
      try (TestStore testStore = new TestStore(kind)) {
        Store other = testStore.join();
        Presence presence = new Presence("there", new byte[] {1});
        other.hold(presence.key(), presence.value(), TestStore.LONG);
        Process own = Process.of(testStore.join(), List.of(rank), 3, presence, TestStore.LONG);
        CompletableFuture<Throwable> call = failing(() -> own.say("arrive", rank));
        Thread.sleep(300);
        assertThat(call).isNotDone();
        if (rank == 0) {
          other.compareAndSet(presence.key(), presence.value(), null, TestStore.LONG);
        } else {
          other.set(presence.key(), new byte[] {2}, TestStore.LONG); // they have started anew
        }
        assertThat(get(call))
            .isInstanceOf(OthersGoneException.class)
            .hasMessageContaining("before they joined");
      }
    }
  }

  /** They are gone as they should be, once all have come. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void whoHasComeMayEndItsPresence(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store other = testStore.join();
      Presence presence = new Presence("there", new byte[] {1});
      other.hold(presence.key(), presence.value(), TestStore.LONG);
      List<Process> two =
          List.of(
              Process.of(testStore.join(), List.of(0), 2, presence, TestStore.LONG),
              Process.of(testStore.join(), List.of(1), 2, presence, TestStore.LONG));
      assertThat(all(two, "arrive")).containsOnlyNulls();
      other.close();
      assertThat(all(two, "share")).containsOnlyNulls();
    }
  }

  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void aSecondProcessOfARankIsRefused(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Process one = Process.of(testStore.join(), List.of(1), 2, TestStore.LONG);
      CompletableFuture<Throwable> first = failing(() -> one.say("arrive", 1));
      Thread.sleep(200);
      Process again = Process.of(testStore.join(), List.of(1), 2, MOMENT);
      Failure.assertFails(Native.WL_MISMATCH, () -> again.say("arrive", 1))
          .startsWith("another process has joined this start as rank 1 too");
      assertThat(first).isNotDone();
      Process.of(testStore.join(), List.of(0), 2, TestStore.LONG).say("arrive", 0);
      assertThat(get(first)).isNull();
    }
  }

  /** Together they have more than one frame, and more than one value of a store. */
  @ParameterizedTest
  @EnumSource(TestStore.Kind.class)
  void longValuesAreToldWhole(TestStore.Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store observer = testStore.join();
      Process two = Process.of(testStore.join(), List.of(0, 1), 3, TestStore.LONG);
      Process one = Process.of(testStore.join(), List.of(2), 3, TestStore.LONG);
      for (int length : new int[] {450 << 10, 0, 200 << 10}) {
        byte[][] each = new byte[3][length];
        for (int rank = 0; rank < 3; rank++) {
          new Random(rank + length).nextBytes(each[rank]);
        }
        String step = length == 200 << 10 ? StartSteps.LAST : "step " + length;
        CompletableFuture<List<byte[]>> heard =
            CompletableFuture.supplyAsync(() -> one.steps.gather(step, each[2]));
        Map<Integer, byte[]> own = new TreeMap<>(Map.of(0, each[0], 1, each[1]));
        assertThat(two.steps.gather(step, () -> own)).containsExactly(each);
        assertThat(heard.get(30, TimeUnit.SECONDS)).containsExactly(each);
      }
      assertThat(observer.keys("", TestStore.LONG)).isEmpty();
    }
  }
}
