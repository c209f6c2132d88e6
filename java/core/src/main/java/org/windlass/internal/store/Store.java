// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Small records under names, which those who meet share: one member's way in. Each call is atomic,
 * and every member sees all changes in one order. Any thread may call; calls of several threads
 * don't hold up one another.
 *
 * <p>A key has 1 to {@link Limits#KEY} bytes of UTF-8, a value at most {@link Limits#VALUE}, and
 * all of a store at most {@link Limits#TOTAL}. By convention a key is a path, its parts separated
 * by slashes, the first one the kind of thing that it tells of.
 *
 * <p><b>Who lives.</b> A key that is held lasts as long as its holder's way in: {@link #close} and
 * the end of the holder's process remove it. So a member that others count on holds a key, others
 * wait until it is other than they saw, and a member that is started again holds it anew.
 *
 * <p><b>Failures</b> are made by the {@link org.windlass.internal.FailureMaker} that the store was
 * given: InvalidArgument for an argument beyond its limits; Resource for a store that is full;
 * Timeout at the deadline; Aborted where the calling thread is interrupted while it waits, whose
 * flag stays set; Closed once this way in was closed; PeerLost once the store was lost. After
 * Timeout, Aborted, Closed or PeerLost a change may have been made or not.
 */
public interface Store extends AutoCloseable {
  /** Where it is, as errors name it. */
  String address();

  /** Gives {@code key} a value. One that is held stays its holder's. */
  void set(String key, byte[] value, Duration deadline);

  /** The value of {@code key}; empty where it has none. */
  Optional<byte[]> get(String key, Duration deadline);

  /** The value of {@code key}, as soon as it has one. */
  default byte[] await(String key, Duration deadline) {
    return awaitOther(key, null, deadline).orElseThrow();
  }

  /**
   * What {@code key} has as soon as that is other than {@code seen}. What changes and changes back
   * in between may go unseen.
   *
   * @param seen null stands for no value
   * @return empty where it has no value any more
   */
  Optional<byte[]> awaitOther(String key, byte[] seen, Duration deadline);

  /**
   * Changes {@code key} if it has what is expected.
   *
   * @param expected null stands for no value
   * @param value null removes the key
   * @return whether it had
   */
  boolean compareAndSet(String key, byte[] expected, byte[] value, Duration deadline);

  /**
   * Gives {@code key} a value that lasts no longer than this way in, if it has none.
   *
   * @return whether it had none
   */
  boolean hold(String key, byte[] value, Duration deadline);

  /** The keys that begin with {@code prefix}, ascending: all of them where it is empty. */
  List<String> keys(String prefix, Duration deadline);

  /**
   * Takes part in one round of an all-gather.
   *
   * @param onRankZero runs, on any thread, once rank 0 is known to have come; not if it is among
   *     the round's own ranks
   * @return what each rank said, in rank order
   * @throws Refusal if the all-gather fails: its code, message and culprits are the same on all
   *     ranks. Mismatch if sizes differ, or another process has one of the ranks; PeerLost if a
   *     rank has left; Timeout at the first deadline; {@link Refusal#isOthersGone}. Without
   *     culprits, PeerLost means that this store was lost
   */
  List<byte[]> gather(Round round, Runnable onRankZero);

  /** Ends this member's part in the all-gather of that name, which fails if it is not over. */
  void quit(String name);

  /**
   * How long a key may stay whose holder has ended in silence, as with its host; that of one whose
   * process alone has ended goes at once.
   */
  Duration silence();

  /** Ends calls in progress with Closed, and lets go of what is held. Idempotent. */
  @Override
  void close();
}
