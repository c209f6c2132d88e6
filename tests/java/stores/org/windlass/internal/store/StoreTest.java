// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.Failure.assertFails;
import static org.windlass.internal.store.TestStore.LONG;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.TestStore.Kind;

/** What every store keeps to; a module that has one has the {@link TestStore} of its kinds. */
@Timeout(120)
public class StoreTest {
  private static final Duration SHORT = Duration.ofMillis(60);

  @ParameterizedTest
  @EnumSource
  void aValueIsWhatWasSetLast(Kind kind) {
    try (TestStore testStore = new TestStore(kind)) {
      Store one = testStore.join();
      Store other = testStore.join();
      assertThat(one.get("a", LONG)).isEmpty();
      byte[] value = bytes(1, 2, 3);
      one.set("a", value, LONG);
      value[0] = 9;
      assertThat(other.get("a", LONG)).contains(bytes(1, 2, 3));
      other.get("a", LONG).orElseThrow()[0] = 9;
      assertThat(other.get("a", LONG)).contains(bytes(1, 2, 3));
      other.set("a", bytes(), LONG);
      assertThat(one.get("a", LONG)).contains(bytes());
      assertThat(one.get("a/b", LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource
  void aWaitEndsWithTheValueThatIsThereOrComes(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store one = testStore.join();
      Store other = testStore.join();
      FutureTask<byte[]> wait = start(() -> one.awaitOther("a", null, LONG).orElseThrow());
      FutureTask<byte[]> second = start(() -> one.awaitOther("a", null, LONG).orElseThrow());
      other.set("b", bytes(1), LONG);
      Thread.sleep(20);
      assertThat(wait).isNotDone();
      other.set("a", bytes(2), LONG);
      assertThat(wait.get()).containsExactly(2);
      assertThat(second.get()).containsExactly(2);
      assertThat(one.awaitOther("a", null, LONG).orElseThrow()).containsExactly(2);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aWaitForAnotherValueEndsWithItOrWithNone(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store one = testStore.join();
      Store other = testStore.join();
      other.set("a", bytes(1), LONG);
      assertThat(one.awaitOther("a", bytes(2), LONG)).contains(bytes(1));
      FutureTask<Optional<byte[]>> changed = start(() -> one.awaitOther("a", bytes(1), LONG));
      other.set("a", bytes(1), LONG);
      Thread.sleep(20);
      assertThat(changed).isNotDone();
      other.set("a", bytes(3), LONG);
      assertThat(changed.get()).contains(bytes(3));
      FutureTask<Optional<byte[]>> gone = start(() -> one.awaitOther("a", bytes(3), LONG));
      Thread.sleep(20);
      other.compareAndSet("a", bytes(3), null, LONG);
      assertThat(gone.get()).isEmpty();
      assertThat(one.awaitOther("a", bytes(3), LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource
  void aWaitForSeveralKeysEndsWithTheFirstThatDiffers(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store one = testStore.join();
      Store other = testStore.join();
      Map<String, byte[]> seen = new LinkedHashMap<>();
      for (String key : List.of("a", "b", "c", "d")) {
        seen.put(key, null);
      }
      for (String key : List.of("d", "a")) {
        FutureTask<Store.Change> change = start(() -> one.awaitAny(seen, LONG));
        Thread.sleep(20);
        assertThat(change).isNotDone();
        other.set(key, bytes(1), LONG);
        assertThat(change.get().key()).isEqualTo(key);
        assertThat(change.get().value()).containsExactly(1);
        seen.put(key, bytes(1));
      }
      FutureTask<Store.Change> gone = start(() -> one.awaitAny(seen, LONG));
      Thread.sleep(20);
      other.compareAndSet("a", bytes(1), null, LONG);
      assertThat(gone.get().key()).isEqualTo("a");
      assertThat(gone.get().value()).isNull();
      other.set("b", bytes(2), LONG);
      assertThat(one.awaitAny(seen, LONG).key()).isEqualTo("a");
      seen.put("e", null);
      assertFails(Native.WL_INVALID_ARGUMENT, () -> one.awaitAny(seen, LONG)).contains("5 keys");
      assertFails(Native.WL_INVALID_ARGUMENT, () -> one.awaitAny(Map.of(), LONG)).contains("0 keys");
    }
  }

  @ParameterizedTest
  @EnumSource
  void aValueIsExchangedForAnotherWhereItIsAsExpected(Kind kind) {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      assertThat(store.compareAndSet("a", bytes(1), bytes(2), LONG)).isFalse();
      assertThat(store.compareAndSet("a", bytes(), bytes(2), LONG)).isFalse();
      assertThat(store.compareAndSet("a", null, null, LONG)).isTrue();
      assertThat(store.get("a", LONG)).isEmpty();
      assertThat(store.compareAndSet("a", null, bytes(1), LONG)).isTrue();
      assertThat(store.compareAndSet("a", null, bytes(2), LONG)).isFalse();
      assertThat(store.compareAndSet("a", bytes(1, 0), bytes(2), LONG)).isFalse();
      assertThat(store.get("a", LONG)).contains(bytes(1));
      assertThat(store.compareAndSet("a", bytes(1), bytes(2), LONG)).isTrue();
      assertThat(store.get("a", LONG)).contains(bytes(2));
      assertThat(store.compareAndSet("a", bytes(2), null, LONG)).isTrue();
      assertThat(store.get("a", LONG)).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource
  void oneOfManyWinsAnExchange(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      CountDownLatch go = new CountDownLatch(1);
      List<FutureTask<Boolean>> all = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        Store store = testStore.join();
        byte[] own = bytes(i);
        all.add(
            start(
                () -> {
                  go.await();
                  return store.compareAndSet("winner", null, own, LONG);
                }));
      }
      go.countDown();
      List<Integer> winners = new ArrayList<>();
      for (int i = 0; i < all.size(); i++) {
        if (all.get(i).get()) {
          winners.add(i);
        }
      }
      assertThat(winners).hasSize(1);
      assertThat(testStore.join().get("winner", LONG)).contains(bytes(winners.get(0)));
    }
  }

  @ParameterizedTest
  @EnumSource
  void whatIsHeldLastsAsLongAsItsHolder(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store holder = testStore.join();
      Store other = testStore.join();
      assertThat(holder.hold("a", bytes(1), LONG)).isTrue();
      assertThat(holder.hold("a", bytes(1), LONG)).isFalse();
      assertThat(other.hold("a", bytes(2), LONG)).isFalse();
      assertThat(holder.hold("b", bytes(1), LONG)).isTrue();
      assertThat(holder.compareAndSet("b", bytes(1), null, LONG)).isTrue();
      other.set("b", bytes(3), LONG);
      other.set("a", bytes(4), LONG);
      FutureTask<Optional<byte[]>> gone = start(() -> other.awaitOther("a", bytes(4), LONG));
      Thread.sleep(20);
      assertThat(gone).isNotDone();
      holder.close();
      assertThat(gone.get()).isEmpty();
      assertThat(other.get("b", LONG)).contains(bytes(3));
      assertThat(other.hold("a", bytes(5), LONG)).isTrue();
      assertThat(testStore.join().get("a", LONG)).contains(bytes(5));
    }
  }

  @ParameterizedTest
  @EnumSource
  void keysAreListedByWhatTheyBeginWith(Kind kind) {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      assertThat(store.keys("", LONG)).isEmpty();
      for (String key : List.of("job/b", "job/a", "jobs", "k", "job/\u00e9\ud83d\ude00")) {
        store.set(key, bytes(1), LONG);
      }
      assertThat(store.keys("job/", LONG))
          .containsExactly("job/a", "job/b", "job/\u00e9\ud83d\ude00");
      assertThat(store.keys("", LONG)).hasSize(5);
      assertThat(store.keys("none", LONG)).isEmpty();
      store.compareAndSet("job/a", bytes(1), null, LONG);
      assertThat(store.keys("job/", LONG)).containsExactly("job/b", "job/\u00e9\ud83d\ude00");
    }
  }

  @ParameterizedTest
  @EnumSource
  void whatIsBeyondTheLimitsIsRefusedAndWhatIsAtThemWorks(Kind kind) {
    String longest = "k".repeat(Limits.KEY);
    byte[] largest = new byte[Limits.VALUE];
    byte[] larger = new byte[Limits.VALUE + 1];
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      store.set(longest, largest, LONG);
      assertThat(store.get(longest, LONG)).contains(largest);
      assertThat(store.compareAndSet(longest, largest, largest, LONG)).isTrue();
      assertThat(store.keys(longest, LONG)).containsExactly(longest);
      List<ThrowingCallable> beyond =
          List.of(
              () -> store.set(longest + "k", largest, LONG),
              () -> store.get("\u00e9".repeat(Limits.KEY / 2 + 1), LONG),
              () -> store.get("", LONG),
              () -> store.get("\ud83d", LONG),
              () -> store.keys(longest + "k", LONG),
              () -> store.set("a", larger, LONG),
              () -> store.hold("a", larger, LONG),
              () -> store.compareAndSet("a", larger, null, LONG),
              () -> store.compareAndSet("a", null, larger, LONG),
              () -> store.awaitOther("a", larger, LONG),
              () -> store.get("a", Duration.ZERO),
              () -> store.awaitOther("a", null, Duration.ofSeconds(-1)).orElseThrow());
      for (ThrowingCallable call : beyond) {
        assertFails(Native.WL_INVALID_ARGUMENT, call).isNotEmpty();
      }
      assertThat(store.keys("", LONG)).containsExactly(longest);
    }
  }

  @ParameterizedTest
  @EnumSource
  void aFullStoreRefusesMoreAndGoesOn(Kind kind) {
    byte[] largest = new byte[Limits.VALUE];
    int fit = (int) (Limits.TOTAL / (Limits.VALUE + Limits.ENTRY + 2));
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      for (int i = 0; i < fit; i++) {
        store.set(Character.toString('a' + i), largest, LONG);
      }
      assertFails(Native.WL_RESOURCE, () -> store.set("more", largest, LONG))
          .contains("set more", "" + Limits.TOTAL);
      assertThat(store.get("more", LONG)).isEmpty();
      store.set("a", bytes(1), LONG);
      store.set("more", bytes(2), LONG);
      assertThat(store.get("more", LONG)).contains(bytes(2));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aListingThatIsTooLongIsRefused(Kind kind) {
    int fit = Limits.LISTING / (Limits.KEY + 2);
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      for (int i = 0; i < fit; i++) {
        store.set(String.format("%0" + Limits.KEY + "d", i), bytes(), LONG);
      }
      assertThat(store.keys("0", LONG)).hasSize(fit);
      store.set("0".repeat(Limits.KEY - 5) + "99999", bytes(), LONG);
      assertFails(Native.WL_RESOURCE, () -> store.keys("0", LONG)).contains("prefix");
    }
  }

  @ParameterizedTest
  @EnumSource
  void aWaitEndsAtItsDeadline(Kind kind) {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      long begin = System.nanoTime();
      assertFails(Native.WL_DEADLINE_EXCEEDED, () -> store.awaitOther("job/absent", null, SHORT).orElseThrow())
          .contains("job/absent", store.address(), Deadline.text(SHORT));
      store.set("b", bytes(1), LONG);
      assertFails(Native.WL_DEADLINE_EXCEEDED, () -> store.awaitOther("b", bytes(1), SHORT))
          .contains("await b");
      assertThat(System.nanoTime() - begin).isBetween(2 * SHORT.toNanos(), LONG.toNanos());
      // What was waited for in vain wakes nobody later.
      store.set("job/absent", bytes(2), LONG);
      assertThat(store.awaitOther("job/absent", null, LONG).orElseThrow()).containsExactly(2);
    }
  }

  @ParameterizedTest
  @EnumSource
  void anInterruptEndsAWaitAndStaysSet(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      CountDownLatch begun = new CountDownLatch(1);
      FutureTask<Boolean> wait =
          new FutureTask<>(
              () -> {
                begun.countDown();
                assertFails(Native.WL_ABORTED, () -> store.awaitOther("a", null, LONG).orElseThrow())
                    .contains("await a", "interrupted", "waiter");
                return Thread.currentThread().isInterrupted();
              });
      Thread thread = new Thread(wait, "waiter");
      thread.start();
      begun.await();
      Thread.sleep(20);
      thread.interrupt();
      assertThat(wait.get(30, TimeUnit.SECONDS)).isTrue();
      store.set("a", bytes(1), LONG);
      assertThat(store.get("a", LONG)).contains(bytes(1));
    }
  }

  @ParameterizedTest
  @EnumSource
  void closingEndsOwnCallsAndNobodyElses(Kind kind) throws Exception {
    try (TestStore testStore = new TestStore(kind)) {
      Store store = testStore.join();
      Store other = testStore.join();
      FutureTask<byte[]> others = start(() -> other.awaitOther("a", null, LONG).orElseThrow());
      FutureTask<Void> own =
          start(
              () -> {
                assertFails(Native.WL_CLOSED, () -> store.awaitOther("a", null, LONG).orElseThrow()).contains("await a");
                return null;
              });
      Thread.sleep(20);
      store.close();
      store.close();
      own.get(30, TimeUnit.SECONDS);
      assertFails(Native.WL_CLOSED, () -> store.get("a", LONG)).contains("get a");
      assertFails(Native.WL_CLOSED, () -> store.awaitOther("a", null, LONG).orElseThrow()).contains("closed");
      assertThat(others).isNotDone();
      other.set("a", bytes(1), LONG);
      assertThat(others.get()).containsExactly(1);
    }
  }

  public static <T> FutureTask<T> start(Callable<T> body) {
    FutureTask<T> task = new FutureTask<>(body);
    Thread thread = new Thread(task, "member");
    thread.setDaemon(true);
    thread.start();
    return task;
  }

  static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }
}
