// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.Refusal;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.RoundFailures;
import org.windlass.internal.store.Store;

/**
 * The rounds of one all-gather at a store that has keys only. The process of rank 0 collects what
 * the others say, and publishes it.
 *
 * <pre>
 * NAME/rank/R   {@link Head} of what the process says whose lowest rank is R, which holds it
 * NAME/all      {@link Head} of what all say; held by the process of rank 0
 * KEY/I         piece I of a long value, from 1 on, written before KEY
 * NAME/failed   code, message and faulty ranks of the first failure; rank 0's process removes it
 * </pre>
 *
 * <p>Each round replaces the values. Nobody writes a value of the next round before all have read
 * that of the present one.
 */
final class RoundsByKeys {
  /** Time between two looks for a failure, while this waits for a key. */
  private static final Duration LOOK_INTERVAL = Duration.ofSeconds(1);

  /** Time for what follows a deadline. */
  private static final Duration LAST_WORD = Duration.ofSeconds(2);

  private static final int PIECE = Limits.VALUE / 2;

  private final Store store;
  private final String name;
  private final int size;

  /** Keys that this process holds; empty once the all-gather is over. */
  private final Set<String> held = ConcurrentHashMap.newKeySet();

  private int number = -1;
  private Round round;
  private Deadline until;

  /**
   * First part of a value.
   *
   * @param number of the round
   * @param size number of all ranks, as the writer has it
   * @param ranks for whom it speaks
   * @param pieces that follow
   * @param begin of the values of the ranks, each an array
   */
  private record Head(int number, int size, List<Integer> ranks, int pieces, byte[] begin) {
    byte[] toBytes() {
      return Encoding.bytes(
          out -> {
            out.writeInt(number);
            out.writeInt(size);
            out.writeInt(ranks.size());
            for (int rank : ranks) {
              out.writeInt(rank);
            }
            out.writeInt(pieces);
            out.write(begin);
          });
    }

    static Head of(byte[] value) {
      try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(value))) {
        int number = in.readInt();
        int size = in.readInt();
        List<Integer> ranks = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
          ranks.add(in.readInt());
        }
        return new Head(number, size, ranks, in.readInt(), in.readAllBytes());
      } catch (IOException e) {
        throw unreadable();
      }
    }
  }

  RoundsByKeys(Store store, String name, int size) {
    this.store = store;
    this.name = name;
    this.size = size;
  }

  /** Takes part in the next round; see {@link Store#gather}. */
  List<byte[]> next(Round next) {
    number++;
    round = next;
    until = Deadline.of(Duration.ofMillis(next.limitMs()));
    try {
      put(key(first()), new TreeSet<>(next.own().keySet()).stream().toList(), next.own()::get);
      byte[][] said = new byte[size][];
      if (isCollector()) {
        for (int rank = 0; rank < size; rank++) {
          if (said[rank] == null) {
            take(key(rank), rank, said);
          }
        }
        put(name + "/all", IntStream.range(0, size).boxed().toList(), rank -> said[rank]);
      } else {
        take(name + "/all", 0, said);
      }
      if (next.isLast()) {
        end();
      }
      return List.of(said);
    } catch (Refusal why) {
      throw failed(why);
    } catch (RuntimeException e) {
      throw until.isOver() ? failed(late()) : e;
    }
  }

  /** Says that this process goes, if the all-gather is not over. */
  void quit() {
    try {
      if (number > 0 && !held.isEmpty()) {
        tell(RoundFailures.left(first()));
      }
      forget();
    } catch (RuntimeException e) {
      // Its keys go with its lease.
    }
  }

  private boolean isCollector() {
    return round.own().containsKey(0);
  }

  /** Returns the lowest rank of this process. */
  private int first() {
    return Collections.min(round.own().keySet());
  }

  private String key(int rank) {
    return name + "/rank/" + rank;
  }

  /** Writes what ranks say in this round, the first part last. */
  private void put(String key, List<Integer> ranks, IntFunction<byte[]> said) {
    byte[] all =
        Encoding.bytes(
            out -> {
              for (int rank : ranks) {
                Encoding.putArray(out, said.apply(rank));
              }
            });
    int pieces = all.length / PIECE;
    for (int i = pieces; i >= 0; i--) {
      int from = i * PIECE;
      byte[] piece = Arrays.copyOfRange(all, from, Math.min(all.length, from + PIECE));
      String place = i > 0 ? key + "/" + i : key;
      byte[] value = i > 0 ? piece : new Head(number, size, ranks, pieces, piece).toBytes();
      if (store.hold(place, value, until.left())) {
        held.add(place);
      } else if (held.contains(place)) {
        store.set(place, value, until.left());
      } else {
        throw RoundFailures.anotherProcess(ranks.get(0));
      }
    }
  }

  /** Waits until a key of {@code rank} has this round's value, and adds what that says. */
  private void take(String key, int rank, byte[][] said) {
    Optional<byte[]> value = store.get(key, until.left());
    Head head = null;
    while (head == null || head.number() != number) {
      ...
    }
  }
}
