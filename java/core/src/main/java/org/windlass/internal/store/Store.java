// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * One member's connection to a store of small values under keys, which members share. Each call is
 * atomic, and every member sees all changes in one order. Any thread may call. Calls of several
 * threads don't delay one another.
 *
 * <p>A key has 1 to {@link Limits#KEY} bytes of UTF-8, a value at most {@link Limits#VALUE}, and a
 * store at most {@link Limits#TOTAL}. By convention a key is a path whose parts are separated by
 * slashes.
 *
 * <p><b>Held keys</b> show which members are alive. A held key lasts as long as its holder's
 * connection: {@link #close} and the end of the holder's process remove it. Others can wait until
 * its value changes.
 *
 * <p><b>Failures.</b> Calls throw a WindlassException with one of these codes:
 *
 * <ul>
 *   <li>InvalidArgument: an argument is beyond its limits;
 *   <li>Resource: the store is full;
 *   <li>DeadlineExceeded: the deadline has passed;
 *   <li>Aborted: the calling thread was interrupted while it waited (its flag stays set);
 *   <li>Closed: the call came after {@link #close};
 *   <li>PeerLost: the store was lost.
 * </ul>
 *
 * <p>After DeadlineExceeded, Aborted, Closed and PeerLost, it is unknown whether a change was made.
 */
public interface Store extends AutoCloseable {
  /** Returns the store's address in the form that messages show. */
  String address();

  /** Gives {@code key} a value. A held key keeps its holder. */
  void set(String key, byte[] value, Duration deadline);

  /** Returns the value of {@code key}; empty if it has none. */
  Optional<byte[]> get(String key, Duration deadline);

  /**
   * Returns the value of {@code key} once it differs from {@code seen}, as {@link #awaitAny} does.
   */
  default Optional<byte[]> awaitOther(String key, byte @Nullable [] seen, Duration deadline) {
    return Optional.ofNullable(awaitAny(Collections.singletonMap(key, seen), deadline).value());
  }

  /**
   * Waits until the value of one of several keys differs from its known value. If a change is
   * undone at once, the call may miss it.
   *
   * @param seen the known values of 1 to {@link Limits#WATCHED} keys; null stands for no value
   * @return the first key that differs, in the order of the map
   */
  Change awaitAny(Map<String, byte @Nullable []> seen, Duration deadline);

  /** A key and its current value. The value is null if the key has none. */
  record Change(String key, byte @Nullable [] value) {}

  /**
   * Changes {@code key} if it has the expected value.
   *
   * @param expected null stands for no value
   * @param value null removes the key
   * @return true if it had the expected value
   */
  boolean compareAndSet(
      String key, byte @Nullable [] expected, byte @Nullable [] value, Duration deadline);

  /**
   * Gives {@code key} a value, if it has none. The value is removed when this connection ends.
   *
   * @return true if it had none
   */
  boolean hold(String key, byte[] value, Duration deadline);

  /** Returns the keys that begin with {@code prefix}, in ascending order. */
  List<String> keys(String prefix, Duration deadline);

  /**
   * Returns how long a held key may stay in the store after its holder's host has failed. If only
   * the holder's process has ended, and not its host, the key disappears at once.
   */
  Duration silence();

  /**
   * Ends calls in progress with a {@link org.windlass.error.ClosedException}, and removes the held
   * keys. Idempotent.
   */
  @Override
  void close();
}
