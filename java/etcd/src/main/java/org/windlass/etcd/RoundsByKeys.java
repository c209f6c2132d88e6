// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.store.OthersGoneException;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.RoundFailures;
import org.windlass.internal.store.Store;

/**
 * Runs the rounds of one all-gather at a store that has only keys. The process of rank 0 collects
 * the values of the other processes, and publishes all of them.
 *
 * <pre>
 * NAME/rank/R    {@link Head} of a process's values; R is its lowest rank
 * NAME/all       {@link Head} of all values, by the process of rank 0
 * NAME/I/rank/R  piece I of a long value, from 1 on; NAME/I/all likewise
 * NAME/failed    the first failure; rank 0's process removes it
 * </pre>
 *
 * <p>A process holds its keys, and writes pieces before their head. Each round replaces the values.
 * A process writes again only after all processes have read its last value.
 */
final class RoundsByKeys {
  /** Interval at which a process that waits for a key checks for a failure. */
  private static final Duration LOOK_INTERVAL = Duration.ofSeconds(1);

  private static final Duration LAST_WORD = Duration.ofSeconds(2);

  private static final int PIECE = Limits.VALUE / 2;
  private static final String ALL = "all";
  private static final String FAILED = "failed";
  private static final String RANK = "rank/";

  private final Store store;
  private final String name;
  private final int size;

  /** Values of the keys that this process holds; empty once the all-gather is over. */
  private final Map<String, byte[]> held = new ConcurrentHashMap<>();

  private int number = -1;
  private Round round;
  private Deadline until;

  RoundsByKeys(Store store, Round first) {
    this.store = store;
    name = first.name();
    size = first.size();
    round = first;
    until = limit(first);
  }

  private static Deadline limit(Round round) {
    return Deadline.of(Duration.ofMillis(round.limitMs()));
  }

  /**
   * First part of a process's values, or of all values.
   *
   * @param number number of the round
   * @param size number of all ranks, as the writer knows it
   * @param ranks ranks whose values these are
   * @param pieces number of pieces that follow
   * @param begin first bytes of the values; each value is written as an array
   */
  private record Head(int number, int size, List<Integer> ranks, int pieces, byte[] begin) {
    byte[] toBytes() {
      return Encoding.bytes(
          out -> {
            out.writeInt(number);
            out.writeInt(size);
            Encoding.putList(out, ranks, DataOutputStream::writeInt);
            out.writeInt(pieces);
            out.write(begin);
          });
    }

    static Head of(byte[] value) {
      return decoded(
          value,
          in ->
              new Head(
                  in.readInt(), in.readInt(), Encoding.list(in, DataInputStream::readInt),
                  in.readInt(), in.readAllBytes()));
    }
  }

  List<byte[]> next(Round next) {
    number++;
    round = next;
    until = limit(next);
    try {
      put(RANK + first(), next.own());
      Map<Integer, byte[]> said = new TreeMap<>();
      if (isCollector()) {
        said.putAll(next.own());
        for (int rank = 0; rank < size; rank++) {
          if (!said.containsKey(rank)) {
            take(RANK + rank, rank, said);
          }
        }
        put(ALL, said);
      } else {
        take(ALL, 0, said);
      }
      if (said.size() < size) {
        throw unreadable();
      }
      if (next.isLast()) {
        end();
      }
      return List.copyOf(said.values());
    } catch (OthersGoneException e) {
      cleanUp();
      throw e;
    } catch (WindlassException e) {
      boolean isOfRound = !e.faultyRanks().isEmpty();
      throw isOfRound || until.isOver() ? failed(isOfRound ? e : late()) : e;
    }
  }

  /** Reports that this process leaves, if the all-gather is not over. */
  void quit() {
    try {
      if (number > 0 && !held.isEmpty()) {
        tell(RoundFailures.left(first()));
      }
      forget();
    } catch (RuntimeException e) {
      // Its keys disappear with its lease.
    }
  }

  private int first() {
    return Collections.min(round.own().keySet());
  }

  private boolean isCollector() {
    return first() == 0;
  }

  private String place(int piece, String key) {
    return name + "/" + (piece == 0 ? "" : piece + "/") + key;
  }

  private void put(String key, Map<Integer, byte[]> said) {
    byte[] all = Encoding.bytes(out -> Encoding.putArrays(out, said.values()));
    List<Integer> ranks = List.copyOf(said.keySet());
    int pieces = all.length / PIECE;
    for (int i = pieces; i >= 0; i--) {
      byte[] piece = Arrays.copyOfRange(all, i * PIECE, Math.min(all.length, (i + 1) * PIECE));
      byte[] value =
          i > 0 ? piece : new Head(number, size, ranks, pieces, piece).toBytes();
      String place = place(i, key);
      if (held.containsKey(place)) {
        store.set(place, value, until.left());
      } else if (!store.hold(place, value, until.left())) {
        throw RoundFailures.anotherProcess(first());
      }
      held.put(place, value);
    }
  }

  /** Waits for the value of {@code rank} in this round, and adds its content to {@code said}. */
  private void take(String key, int rank, Map<Integer, byte[]> said) {
    Head head = await(key, rank);
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.writeBytes(head.begin());
    for (int i = 1; i <= head.pieces(); i++) {
      all.writeBytes(
          store.get(place(i, key), until.left()).orElseThrow(() -> RoundFailures.left(rank)));
    }
    List<byte[]> values = decoded(all.toByteArray(), Encoding::arrays);
    boolean isRight = head.ranks().contains(rank) && head.ranks().size() == values.size();
    for (int i = 0; isRight && i < values.size(); i++) {
      int each = head.ranks().get(i);
      isRight = each >= 0 && each < size && said.put(each, values.get(i)) == null;
    }
    if (!isRight) {
      throw unreadable();
    }
  }

  private Head await(String key, int rank) {
    String place = place(0, key);
    byte[] value = store.get(place, until.left()).orElse(null);
    while (true) {
      if (value != null) {
        Head head = Head.of(value);
        requireSize(rank, head);
        if (head.number() == number) {
          return head;
        }
      } else if (number > 0) {
        throw RoundFailures.left(rank);
      }
      try {
        value = store.awaitOther(place, value, until.left(LOOK_INTERVAL)).orElse(null);
      } catch (DeadlineExceededException e) {
        if (until.isOver()) {
          throw e;
        }
        look();
      }
    }
  }

  /** Throws if the all-gather has failed, or if missing ranks can't join any more. */
  private void look() {
    store.get(place(0, FAILED), until.left()).map(RoundsByKeys::failure).ifPresent(
        failure -> {
          throw failure;
        });
    if (number > 0) {
      return;
    }
    store.get(place(0, RANK + 0), until.left()).ifPresent(zero -> requireSize(0, Head.of(zero)));
    Round.Presence others = round.others();
    if (others != null
        && !Arrays.equals(store.get(others.key(), until.left()).orElse(null), others.value())) {
      throw new OthersGoneException();
    }
  }

  private void requireSize(int rank, Head head) {
    if (head.size() != size) {
      throw RoundFailures.sizes(Map.of(first(), size, rank, head.size()));
    }
  }

  private WindlassException late() {
    Set<Integer> missing = new TreeSet<>(IntStream.range(0, size).boxed().toList());
    for (String place : store.keys(place(0, RANK), LAST_WORD)) {
      store
          .get(place, LAST_WORD)
          .map(Head::of)
          .filter(head -> head.number() == number)
          .ifPresent(head -> head.ranks().forEach(missing::remove));
    }
    if (missing.isEmpty()) {
      missing.add(0); // all have joined, and rank 0 has to say so
    }
    List<Integer> some = List.copyOf(missing);
    List<Integer> none = List.of();
    boolean isFirst = number == 0;
    return new RoundFailures.Missing(
            store.address(), size, isFirst ? some : none, isFirst ? none : some)
        .late(null);
  }

  private static WindlassException failure(byte[] told) {
    return decoded(told, Encoding::failure);
  }

  private static <T> T decoded(byte[] value, Encoding.Reading<T> reading) {
    try {
      return Encoding.read(value, reading);
    } catch (MalformedException e) {
      throw unreadable();
    }
  }

  private static WindlassException unreadable() {
    return new MismatchException(
        "what ranks say at the start can't be read; run one version of windlass on all ranks",
        List.of(0));
  }

  /** Publishes a failure. Returns the first that any process has published. */
  private WindlassException tell(WindlassException why) {
    byte[] told = Encoding.bytes(out -> Encoding.putFailure(out, why));
    String place = place(0, FAILED);
    return store.compareAndSet(place, null, told, LAST_WORD)
        ? why
        : store.get(place, LAST_WORD).map(RoundsByKeys::failure).orElse(why);
  }

  /** Publishes why this process leaves, if it has joined. Returns what all ranks throw. */
  private WindlassException failed(WindlassException why) {
    WindlassException told = held.isEmpty() ? why : tell(why);
    cleanUp();
    return told;
  }

  private void cleanUp() {
    try {
      forget();
      if (isCollector()) {
        awaitOthersGone(Deadline.of(LAST_WORD));
        String place = place(0, FAILED);
        store
            .get(place, LAST_WORD)
            .ifPresent(failure -> store.compareAndSet(place, failure, null, LAST_WORD));
      }
    } catch (RuntimeException e) {
      // The keys disappear with the lease.
    }
  }

  /** Ends the last round. Rank 0's process keeps its keys until all have read them. */
  private void end() {
    if (isCollector()) {
      awaitOthersGone(until);
    }
    forget();
  }

  private void awaitOthersGone(Deadline end) {
    for (String place : store.keys(place(0, RANK), end.left())) {
      byte[] said = held.containsKey(place) ? null : store.get(place, end.left()).orElse(null);
      while (said != null) {
        said = store.awaitOther(place, said, end.left()).orElse(null);
      }
    }
  }

  private void forget() {
    held.forEach((place, value) -> store.compareAndSet(place, value, null, LAST_WORD));
    held.clear();
  }
}
