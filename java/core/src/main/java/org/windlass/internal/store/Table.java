// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Holds the keys of a store with their values, holders and waiters. Only one thread at a time may
 * call it. It does not copy arrays, so callers must not change arrays that they have passed.
 */
final class Table {
  private final NavigableMap<String, Entry> entries = new TreeMap<>();
  private final Map<String, Set<Wait>> waits = new HashMap<>();

  private long bytes;

  private record Entry(byte[] value, @Nullable Object holder) {}

  /** A wait until one of several keys has another value than now. It does not keep the values. */
  final class Wait {
    private final Set<String> keys;
    private final Consumer<Store.Change> then;

    private Wait(Set<String> keys, Consumer<Store.Change> then) {
      this.keys = keys;
      this.then = then;
    }

    void cancel() {
      for (String key : keys) {
        Set<Wait> others = waits.get(key);
        if (others != null && others.remove(this) && others.isEmpty()) {
          waits.remove(key);
        }
      }
    }
  }

  byte @Nullable [] get(String key) {
    Entry entry = entries.get(key);
    return entry == null ? null : entry.value;
  }

  /**
   * Gives a key a value. If the key is held, its holder stays the same.
   *
   * @throws org.windlass.error.ResourceException if the store is full
   */
  void set(String key, byte[] value) {
    Entry before = entries.get(key);
    put(key, value, before == null ? null : before.holder);
  }

  boolean compareAndSet(String key, byte @Nullable [] expected, byte @Nullable [] value) {
    byte[] now = get(key);
    if (!Arrays.equals(now, expected)) {
      return false;
    }
    if (value != null) {
      set(key, value);
    } else if (now != null) {
      remove(key);
    }
    return true;
  }

  boolean hold(String key, byte[] value, Object holder) {
    if (entries.containsKey(key)) {
      return false;
    }
    put(key, value, holder);
    return true;
  }

  void release(Object holder) {
    List<String> held =
        entries.entrySet().stream()
            .filter(entry -> entry.getValue().holder == holder)
            .map(Map.Entry::getKey)
            .toList();
    held.forEach(this::remove);
  }

  List<String> keys(String prefix) {
    List<String> found = new ArrayList<>();
    long listing = 0;
    for (String key : entries.tailMap(prefix, true).keySet()) {
      if (!key.startsWith(prefix)) {
        break;
      }
      listing += Limits.listing(key);
      if (listing > Limits.LISTING) {
        throw Limits.tooManyKeys();
      }
      found.add(key);
    }
    return found;
  }

  /**
   * Calls {@code then} once the value of one of the keys differs from that in {@code seen}, where
   * null means that the key had no value. The call is made now, or during the call that changes the
   * key. {@code then} must not change keys.
   *
   * @return null if {@code then} was called now
   */
  @Nullable Wait await(Map<String, byte @Nullable []> seen, Consumer<Store.Change> then) {
    for (Map.Entry<String, byte @Nullable []> each : seen.entrySet()) {
      byte[] now = get(each.getKey());
      if (!Arrays.equals(now, each.getValue())) {
        then.accept(new Store.Change(each.getKey(), now));
        return null;
      }
    }
    Wait wait = new Wait(Set.copyOf(seen.keySet()), then);
    for (String key : wait.keys) {
      waits.computeIfAbsent(key, any -> new LinkedHashSet<>()).add(wait);
    }
    return wait;
  }

  private void put(String key, byte[] value, @Nullable Object holder) {
    byte[] before = get(key);
    long more = value.length - (before == null ? -Limits.cost(key) : before.length);
    if (bytes + more > Limits.TOTAL) {
      throw Limits.full(bytes, more);
    }
    bytes += more;
    entries.put(key, new Entry(value, holder));
    if (!Arrays.equals(before, value)) {
      changed(key, value);
    }
  }

  private void remove(String key) {
    Entry entry = Objects.requireNonNull(entries.remove(key));
    bytes -= Limits.cost(key) + entry.value.length;
    changed(key, null);
  }

  private void changed(String key, byte @Nullable [] value) {
    Set<Wait> parked = waits.get(key);
    if (parked == null) {
      return;
    }
    List<Wait> over = List.copyOf(parked);
    over.forEach(Wait::cancel);
    over.forEach(wait -> wait.then.accept(new Store.Change(key, value)));
  }
}
