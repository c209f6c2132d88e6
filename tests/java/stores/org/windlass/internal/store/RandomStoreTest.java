// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.TestStore.LONG;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.store.TestStore.Kind;
import org.windlass.testing.RandomSeeds;

/** Random calls of several members, beside a map that does the same. */
@Timeout(240)
class RandomStoreTest {
  private static final int MEMBERS = 4;
  private static final int STEPS = 250;
  private static final List<String> KEYS = List.of("a", "a/b", "a/c", "b", "\u00e9");

  /** What is stored, and the number of the member who holds it, or -1. */
  private record Stored(byte[] value, int holder) {}

  @RandomSeeds(value = 4, inLong = 300)
  void callsInARowDoWhatAMapDoes(long seed) {
    for (Kind kind : Kind.values()) {
      try (TestStore testStore = new TestStore(kind)) {
        inARow(testStore, new Random(seed));
      }
    }
  }

  private static void inARow(TestStore testStore, Random random) {
    Map<String, Stored> oracle = new TreeMap<>();
    Store[] members = new Store[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
      members[i] = testStore.join();
    }
    for (int step = 0; step < STEPS; step++) {
      int who = random.nextInt(MEMBERS);
      String key = KEYS.get(random.nextInt(KEYS.size()));
      byte[] value = value(random);
      Stored stored = oracle.get(key);
      byte[] now = stored == null ? null : stored.value;
      int holder = stored == null ? -1 : stored.holder;
      Store store = members[who];
      switch (random.nextInt(8)) {
        case 0 -> {
          store.set(key, value, LONG);
          oracle.put(key, new Stored(value, holder));
        }
        case 1 -> assertThat(store.get(key, LONG).orElse(null)).isEqualTo(now);
        case 2, 3 -> {
          byte[] expected = random.nextBoolean() ? now : value(random);
          byte[] next = random.nextInt(3) == 0 ? null : value;
          boolean same = Arrays.equals(now, expected);
          assertThat(store.compareAndSet(key, expected, next, LONG)).isEqualTo(same);
          if (same && next == null) {
            oracle.remove(key);
          } else if (same) {
            oracle.put(key, new Stored(next, holder));
          }
        }
        case 4 -> {
          assertThat(store.hold(key, value, LONG)).isEqualTo(now == null);
          if (now == null) {
            oracle.put(key, new Stored(value, who));
          }
        }
        case 5 -> {
          String prefix = random.nextBoolean() ? "" : key.substring(0, 1);
          assertThat(store.keys(prefix, LONG))
              .isEqualTo(oracle.keySet().stream().filter(k -> k.startsWith(prefix)).toList());
        }
        case 6 -> {
          byte[] seen = value(random);
          if (!Arrays.equals(seen, now)) {
            Optional<byte[]> other = store.awaitOther(key, seen, LONG);
            assertThat(other.orElse(null)).isEqualTo(now);
          }
        }
        default -> {
          if (random.nextInt(10) == 0) {
            store.close();
            oracle.values().removeIf(s -> s.holder == who);
            members[who] = testStore.join();
            awaitGone(members[who], oracle);
          }
        }
      }
    }
  }

  /** A server learns a moment later that a member has closed its way in. */
  private static void awaitGone(Store store, Map<String, Stored> oracle) {
    long end = System.nanoTime() + LONG.toNanos();
    while (!store.keys("", LONG).equals(List.copyOf(oracle.keySet()))) {
      assertThat(System.nanoTime()).isLessThan(end);
    }
  }

  private static byte[] value(Random random) {
    byte[] value = new byte[random.nextInt(20) == 0 ? random.nextInt(200_000) : random.nextInt(10)];
    if (random.nextBoolean()) {
      random.nextBytes(value);
    }
    return value;
  }

  /** Each member counts up by exchanges, and another one waits for each number. */
  @RandomSeeds(value = 2, inLong = 100)
  void callsSideBySideAreAtomic(long seed) throws Exception {
    for (Kind kind : Kind.values()) {
      try (TestStore testStore = new TestStore(kind)) {
        sideBySide(testStore, seed);
      }
    }
  }

  private static void sideBySide(TestStore testStore, long seed) throws Exception {
    int times = 25;
    List<FutureTask<Void>> all = new ArrayList<>();
    for (int i = 0; i < MEMBERS; i++) {
      Store store = testStore.join();
      Random random = new Random(seed + i);
      all.add(
          StoreTest.start(
              () -> {
                for (int n = 0; n < times; n++) {
                  if (random.nextInt(4) == 0) {
                    Thread.yield();
                  }
                  exchange(store);
                }
                return null;
              }));
    }
    Store watcher = testStore.join();
    long last = 0;
    byte[] seen = null;
    while (last < MEMBERS * times) {
      seen = watcher.awaitOther("exchanged", seen, LONG).orElseThrow();
      long now = ByteBuffer.wrap(seen).getLong();
      assertThat(now).isGreaterThan(last);
      last = now;
    }
    for (FutureTask<Void> task : all) {
      task.get();
    }
    assertThat(last).isEqualTo(MEMBERS * times);
  }

  private static void exchange(Store store) {
    while (true) {
      byte[] now = store.get("exchanged", LONG).orElse(null);
      long next = (now == null ? 0 : ByteBuffer.wrap(now).getLong()) + 1;
      byte[] value = ByteBuffer.allocate(Long.BYTES).putLong(next).array();
      if (store.compareAndSet("exchanged", now, value, LONG)) {
        return;
      }
    }
  }
}
