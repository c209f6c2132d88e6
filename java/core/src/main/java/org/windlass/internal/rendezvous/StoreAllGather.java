// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Waits;

/**
 * An all-gather over the keys of a store. The process of rank 0 collects the values of the other
 * processes, and publishes all of them.
 *
 * <pre>
 * NAME/rank/R    {@link Head} of a process's values; R is its lowest rank
 * NAME/all       {@link Head} of all values, by the process of rank 0
 * NAME/I/rank/R  piece I of a long value, from 1 on; NAME/I/all likewise
 * NAME/failed    the first failure
 * </pre>
 *
 * <p>A process holds its keys, and writes pieces before their head. Each round replaces the values.
 * A process writes again only after all processes have read its last value. A process that leaves
 * in the first round may join again. If a process leaves in a later round, all other processes
 * fail.
 */
public final class StoreAllGather implements AllGather {
  /** Interval at which rank 0's process checks which processes are still connected. */
  private static final Duration CHECK_INTERVAL = Duration.ofMillis(200);

  /** Longest time before the missing ranks are logged; at most a fourth of the deadline. */
  private static final Duration LONGEST_QUIET = Duration.ofSeconds(10);

  /** Time limit of the calls that explain a failure, or report it to the other processes. */
  private static final Duration LAST_WORD = Duration.ofSeconds(2);

  /** Time that a process whose deadline passes leaves to lower ranks to report who is missing. */
  private static final Duration LOWER_FIRST = Duration.ofMillis(500);

  private static final int PIECE = Limits.VALUE / 2;
  private static final String ALL = "all";
  private static final String RANK = "rank/";

  private final Store store;
  private final String name;
  private final int size;
  private final @Nullable Presence others;
  private final String failed;

  /** Values of the keys that this process holds. Empty once the all-gather is over. */
  private final Map<String, byte[]> held = new LinkedHashMap<>();

  /** For each key of another process, the last value that this process has read. */
  private final Map<String, byte[]> seen = new HashMap<>();

  private volatile boolean isOpen;
  private boolean isLogged;
  private int number; // of the round; so many are complete
  private int first; // lowest rank of this process
  private Deadline until = Deadline.of(Deadline.DEFAULT);
  private Deadline quiet = until;
  private byte @Nullable [] failedBefore; // failure of an earlier all-gather of this name

  /**
   * Names an all-gather.
   *
   * @param others a key that exists while missing ranks may still join; null if there is no such
   *     key
   */
  public StoreAllGather(Store store, String name, int size, @Nullable Presence others) {
    this.store = store;
    this.name = name;
    this.size = size;
    this.others = others;
    failed = name + "/failed";
  }

  /** Returns true if rank 0 is known to have joined. */
  public boolean isOpen() {
    return isOpen;
  }

  @Override
  public List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) {
    if (size > Member.MOST_RANKS) {
      throw new InvalidArgumentException(
          "a start of " + size + " ranks; it may have " + Member.MOST_RANKS);
    }
    first = Collections.min(own.keySet());
    until = Deadline.of(limit);
    quiet = Deadline.of(Math.max(1, Math.min(LONGEST_QUIET.toNanos(), until.limitNs() / 4)));
    try {
      if (number == 0) {
        failedBefore = store.get(failed, until.left()).orElse(null);
      }
      put(RANK + first, own);
      Map<Integer, byte[]> said = isCollector() ? collected(own) : published(own);
      number++;
      if (isLast) {
        awaitOthersRead(until);
        attempt(() -> forget(""));
      }
      return List.copyOf(said.values());
    } catch (OthersGoneException e) {
      quit();
      throw e;
    } catch (WindlassException e) {
      boolean isOfRound = !e.faultyRanks().isEmpty();
      throw isOfRound || until.isOver() ? reported(isOfRound ? e : late()) : e;
    }
  }

  /**
   * Waits until the other processes have read the last round, and then reports that this process
   * leaves.
   */
  @Override
  public void quit() {
    if (number > 0 && !held.isEmpty()) {
      attempt(() -> awaitOthersRead(Deadline.of(LAST_WORD)));
      reported(RoundFailures.left(first));
    }
    attempt(() -> forget(""));
  }

  private boolean isCollector() {
    return first == 0;
  }

  private String place(int piece, String key) {
    return name + "/" + (piece == 0 ? "" : piece + "/") + key;
  }

  private Map<Integer, byte[]> collected(Map<Integer, byte[]> own) {
    Map<Integer, byte[]> said = new TreeMap<>(own);
    while (said.size() < size) {
      for (int rank = 0; said.size() < size; rank = (rank + 1) % size) {
        if (!said.containsKey(rank)) {
          take(RANK + rank, rank, said);
        }
      }
      for (String place : number == 0 ? Set.copyOf(seen.keySet()) : Set.<String>of()) {
        if (!isUnchanged(place)) {
          drop(place, said);
        }
      }
    }
    put(ALL, said);
    return said;
  }

  private Map<Integer, byte[]> published(Map<Integer, byte[]> own) {
    if (!isOpen) {
      byte[] head = Objects.requireNonNull(change(place(0, RANK + 0), null, Map.of()));
      requireSize(0, Head.of(head, 0));
      isOpen = true;
    }
    Map<Integer, byte[]> said = new TreeMap<>();
    do {
      said.clear();
      take(ALL, 0, said);
      if (said.size() < size) {
        throw RoundFailures.unreadable(0);
      }
      // Values without this process's own are those of an earlier all-gather of this name.
    } while (number == 0
        && !own.keySet().stream().allMatch(each -> Arrays.equals(own.get(each), said.get(each))));
    return said;
  }

  private void put(String key, Map<Integer, byte[]> said) {
    byte[] all = Encoding.bytes(out -> Encoding.putArrays(out, said.values()));
    List<Integer> ranks = List.copyOf(said.keySet());
    int pieces = all.length / PIECE;
    for (int i = pieces; i >= 0; i--) {
      byte[] piece = Arrays.copyOfRange(all, i * PIECE, Math.min(all.length, (i + 1) * PIECE));
      byte[] value = i > 0 ? piece : new Head(number, size, ranks, pieces, piece).toBytes();
      String place = place(i, key);
      if (held.containsKey(place)) {
        store.set(place, value, until.left());
      } else if (!store.hold(place, value, until.left())) {
        throw RoundFailures.anotherProcess(first);
      }
      held.put(place, value);
    }
  }

  /**
   * Waits for the value of {@code rank} in this round, and adds the values in it to {@code said}.
   */
  private void take(String key, int rank, Map<Integer, byte[]> said) {
    Head head;
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    do {
      head = await(place(0, key), rank, said);
      all.reset();
      all.writeBytes(head.begin());
      for (int i = 1; i <= head.pieces(); i++) {
        Optional<byte[]> piece = store.get(place(i, key), until.left());
        if (piece.isEmpty()) {
          break;
        }
        all.writeBytes(piece.get());
      }
      // The pieces belong to this head if it is still there.
    } while (head.pieces() > 0 && !isUnchanged(place(0, key)));
    List<byte[]> values = Head.decoded(all.toByteArray(), rank, Encoding::arrays);
    boolean isRight = head.ranks().contains(rank) && head.ranks().size() == values.size();
    for (int i = 0; isRight && i < values.size(); i++) {
      int each = head.ranks().get(i);
      isRight = each >= 0 && each < size && said.put(each, values.get(i)) == null;
    }
    if (!isRight) {
      throw RoundFailures.unreadable(rank);
    }
  }

  private boolean isUnchanged(String place) {
    return Arrays.equals(store.get(place, until.left()).orElse(null), seen.get(place));
  }

  /**
   * Waits for the value of this round under a key.
   *
   * @param rank rank whose process writes the key
   * @param said values of this round that were read before. The values of ranks that leave are
   *     removed
   */
  private Head await(String place, int rank, Map<Integer, byte[]> said) {
    while (true) {
      byte[] value = change(place, seen.get(place), said);
      if (value != null) {
        seen.put(place, value);
        Head head = Head.of(value, rank);
        requireSize(rank, head);
        if (head.number() == number) {
          return head;
        }
      } else {
        seen.remove(place);
      }
      if (number > 0) {
        throw RoundFailures.left(rank); // another process may have come for it
      }
    }
  }

  /** Returns the value of a key once it differs from {@code last}; null for none. */
  private byte @Nullable [] change(
      String place, byte @Nullable [] last, Map<Integer, byte[]> said) {
    Map<String, byte @Nullable []> watched = new LinkedHashMap<>();
    watched.put(failed, failedBefore);
    watched.put(place, last);
    if (others != null && number == 0) {
      watched.put(others.key(), others.value());
    }
    while (true) {
      Duration limit = isCollector() ? CHECK_INTERVAL : isLogged ? until.left() : quiet.left();
      Store.Change change;
      try {
        change = store.awaitAny(watched, until.left(limit));
      } catch (DeadlineExceededException e) {
        if (until.isOver()) {
          throw e;
        }
        look(said);
        continue;
      }
      byte[] value = change.value();
      if (change.key().equals(place)) {
        return value;
      }
      if (!change.key().equals(failed)) {
        throw new OthersGoneException();
      }
      if (value != null) {
        // All processes get the values of a complete round.
        byte[] now = isCollector() ? last : store.get(place, until.left()).orElse(last);
        if (Arrays.equals(now, last)) {
          throw failure(value);
        }
        return now;
      }
      failedBefore = null;
      watched.put(failed, null);
    }
  }

  /**
   * Checks that the processes whose values were collected are still connected. Logs which ranks are
   * missing.
   */
  private void look(Map<Integer, byte[]> said) {
    Set<String> present = new HashSet<>(store.keys(place(0, RANK), until.left()));
    for (String place : isCollector() ? Set.copyOf(seen.keySet()) : Set.<String>of()) {
      if (!present.contains(place)) {
        drop(place, said);
      }
    }
    for (int rank : isCollector() ? List.copyOf(said.keySet()) : List.<Integer>of()) {
      String place = place(0, RANK + rank);
      if (present.contains(place) && !seen.containsKey(place) && !held.containsKey(place)) {
        throw RoundFailures.anotherProcess(rank);
      }
    }
    if (!isLogged && quiet.isOver()) {
      isLogged = true;
      IntStream lower = IntStream.range(0, first);
      if (lower
          .mapToObj(rank -> place(0, RANK + rank))
          .filter(present::contains)
          .noneMatch(this::isOfRound)) {
        String left = Deadline.text(until.left());
        Log.warn("{0} so far; the start waits for {1} more", missing(), left);
      }
    }
  }

  private boolean isOfRound(String place) {
    byte[] value = store.get(place, LAST_WORD).orElse(null);
    return value != null && Head.of(value, 0).number() == number;
  }

  /**
   * Forgets the values of a process that has left. In the first round, that process may join again.
   */
  private void drop(String place, Map<Integer, byte[]> said) {
    List<Integer> gone = Head.of(Objects.requireNonNull(seen.remove(place)), 0).ranks();
    if (number > 0) {
      throw RoundFailures.left(gone.stream().findFirst().orElse(0));
    }
    gone.forEach(said::remove);
  }

  private void requireSize(int rank, Head head) {
    if (head.size() != size) {
      throw RoundFailures.sizes(first, size, rank, head.size());
    }
  }

  private RoundFailures.Missing missing() {
    Set<Integer> missing = new TreeSet<>(IntStream.range(0, size).boxed().toList());
    Deadline end = Deadline.of(LAST_WORD);
    for (String place : store.keys(place(0, RANK), end.left())) {
      store
          .get(place, end.left())
          .map(value -> Head.of(value, 0))
          .filter(head -> head.number() == number)
          .ifPresent(head -> head.ranks().forEach(missing::remove));
    }
    if (missing.isEmpty()) {
      missing.add(0); // all have joined, and rank 0 has to say so
    }
    return new RoundFailures.Missing(
        store.address(), size, number == 0, List.copyOf(missing));
  }

  /** Returns why the deadline has passed. The lowest rank that is there finds it out for all. */
  private WindlassException late() {
    try {
      Set<String> present = Set.copyOf(store.keys(place(0, RANK), LAST_WORD));
      if (IntStream.range(0, first).anyMatch(each -> present.contains(place(0, RANK + each)))) {
        attempt(() -> store.awaitOther(failed, failedBefore, LOWER_FIRST));
        byte[] told = store.get(failed, LAST_WORD).orElse(failedBefore);
        if (!Arrays.equals(told, failedBefore)) {
          return failure(Objects.requireNonNull(told));
        }
      }
      return missing().late();
    } catch (DeadlineExceededException e) {
      return new DeadlineExceededException(
          "the deadline passed, and the store at " + store.address() + " did not report which of "
              + size + " ranks had joined");
    }
  }

  private static WindlassException failure(byte[] told) {
    return Head.decoded(told, 0, Encoding::failure);
  }

  /**
   * If this process has joined, reports a failure to the other processes. Waits until they have
   * read it, but at most {@link #LAST_WORD}.
   *
   * @return the exception that all processes throw: the first failure that any of them has reported
   */
  private WindlassException reported(WindlassException why) {
    if (!held.containsKey(place(0, RANK + first))) {
      attempt(() -> forget(""));
      return why;
    }
    WindlassException[] told = {why};
    attempt(
        () -> {
          byte[] own = Encoding.bytes(out -> Encoding.putFailure(out, why));
          if (store.hold(failed, own, LAST_WORD)
              || failedBefore != null
                  && store.compareAndSet(failed, failedBefore, own, LAST_WORD)) {
            forget(RANK);
            held.put(failed, own);
            awaitOthersGone(Deadline.of(LAST_WORD));
          } else {
            byte[] found = store.get(failed, LAST_WORD).orElse(failedBefore);
            told[0] = Arrays.equals(found, failedBefore) ? why : failure(found);
          }
        });
    attempt(() -> forget(""));
    held.clear();
    return told[0];
  }

  /**
   * Waits until the other processes have read the values that rank 0's process has published, or
   * have removed their own keys.
   */
  private void awaitOthersRead(Deadline end) {
    try {
      if (isCollector()) {
        seen.forEach((place, value) -> store.awaitOther(place, value, end.left()));
      }
    } catch (DeadlineExceededException e) {
      // If a process is stopped, it fails when it continues, and the next call of the other
      // processes names it.
    }
  }

  private void awaitOthersGone(Deadline end) {
    for (String place : store.keys(place(0, RANK), end.left())) {
      byte[] said = store.get(place, end.left()).orElse(null);
      while (said != null) {
        said = store.awaitOther(place, said, end.left()).orElse(null);
      }
    }
  }

  /** Removes the keys of this process whose heads begin with {@code key}. */
  private void forget(String key) {
    for (String place : List.copyOf(held.keySet())) {
      if (place.startsWith(place(0, key))) {
        store.compareAndSet(place, held.remove(place), null, LAST_WORD);
      }
    }
  }

  /**
   * Makes the calls even after an interrupt. If a call fails, the keys disappear when the
   * connection ends.
   */
  private static void attempt(Runnable calls) {
    try {
      Waits.uninterrupted(calls);
    } catch (RuntimeException e) {
      // The connection is lost, or the store does not answer.
    }
  }
}
