// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.OthersGoneException;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.RoundFailures;
import org.windlass.internal.store.Store;

/**
 * The rounds of one all-gather at a store that has keys only. The process of rank 0 collects what
 * the others say, and publishes it.
 *
 * <pre>
 * NAME/K/R         number of ranks, and what rank R says in round K; held by its process
 * NAME/K/all/I     piece I of what all said; held by the process of rank 0
 * NAME/K/all       number of pieces; held by the process of rank 0, written after them
 * NAME/failed      code, message and faulty ranks of the first failure; rank 0's process removes it
 * </pre>
 */
final class RoundsByKeys {
  /** Time between two looks for a failure, while this waits for a key. */
  private static final Duration LOOK_INTERVAL = Duration.ofSeconds(1);

  /** Time for what follows a deadline. */
  private static final Duration LAST_WORD = Duration.ofSeconds(2);

  private final Store store;
  private final String name;
  private final int size;
  private int number = -1;
  private Round round;
  private Deadline until;

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
    boolean isCollector = next.own().containsKey(0);
    try {
      say();
      if (isCollector) {
        publish(collect());
      }
      List<byte[]> said = published();
      forget(number - 1);
      if (next.isLast()) {
        end(isCollector);
      }
      return said;
    } catch (OthersGoneException e) {
      cleanUp(isCollector);
      throw e;
    } catch (WindlassException e) {
      boolean isOfRound = !e.faultyRanks().isEmpty();
      if (!isOfRound && !until.isOver()) {
        throw e;
      }
      WindlassException told = tell(isOfRound ? e : late());
      cleanUp(isCollector);
      throw told;
    }
  }

  /** Says that this process goes, if the all-gather is not over. */
  void quit() {
    try {
      if (round != null) {
        tell(RoundFailures.left(round.own().keySet().iterator().next()));
        forget(number - 1);
        forget(number);
      }
    } catch (RuntimeException e) {
      // Its keys go with its lease.
    }
  }

  private String key(int number, Object what) {
    return name + "/" + number + "/" + what;
  }

  private void say() {
    for (Map.Entry<Integer, byte[]> each : round.own().entrySet()) {
      byte[] said =
          ByteBuffer.allocate(Integer.BYTES + each.getValue().length)
              .putInt(size)
              .put(each.getValue())
              .array();
      if (!store.hold(key(number, each.getKey()), said, until.left())) {
        throw RoundFailures.anotherProcess(each.getKey());
      }
    }
  }

  private byte[] collect() {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int rank = 0; rank < size; rank++) {
      byte[] said = await(key(number, rank), rank);
      requireSize(rank, said);
      int length = said.length - Integer.BYTES;
      all.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(length).array());
      all.write(said, Integer.BYTES, said.length - Integer.BYTES);
    }
    return all.toByteArray();
  }

  /** Compares the number of ranks that {@code rank} says, if it has said something. */
  private void requireSize(int rank, byte[] said) {
    int theirs = size;
    if (said != null) {
      theirs = said.length < Integer.BYTES ? 0 : ByteBuffer.wrap(said).getInt();
    }
    int own = round.own().keySet().iterator().next();
    if (theirs != size) {
      throw RoundFailures.sizes(Map.of(own, size, rank, theirs));
    }
  }

  private void publish(byte[] all) {
    int count = 0;
    for (int from = 0; from < all.length; from += Limits.VALUE) {
      byte[] piece = Arrays.copyOfRange(all, from, Math.min(all.length, from + Limits.VALUE));
      store.hold(key(number, "all/" + count++), piece, until.left());
    }
    store.hold(key(number, "all"), ByteBuffer.allocate(4).putInt(count).array(), until.left());
  }

  private List<byte[]> published() {
    byte[] head = await(key(number, "all"), 0);
    int count = head.length == Integer.BYTES ? ByteBuffer.wrap(head).getInt() : -1;
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int i = 0; i < count; i++) {
      all.writeBytes(
          store
              .get(key(number, "all/" + i), until.left())
              .orElseThrow(() -> RoundFailures.left(0)));
    }
    List<byte[]> said = new ArrayList<>();
    try (DataInputStream in =
        new DataInputStream(new ByteArrayInputStream(all.toByteArray()))) {
      while (said.size() < size && in.available() > 0) {
        said.add(Encoding.array(in));
      }
    } catch (IOException e) {
      said.clear();
    }
    if (said.size() != size) {
      throw new MismatchException(
          "what " + size + " ranks say at the start can't be read; run one version of windlass, and"
              + " give all ranks one size",
          List.of(0));
    }
    return said;
  }

  /** Waits until a key of {@code rank} has a value. */
  private byte[] await(String key, int rank) {
    while (true) {
      long beganNs = System.nanoTime();
      Duration once = until.left(LOOK_INTERVAL);
      try {
        return store.await(key, once);
      } catch (RuntimeException e) {
        if (until.isOver() || System.nanoTime() - beganNs < once.toNanos()) {
          throw e;
        }
      }
      requireNoFailure();
      if (number == 0) {
        requireSize(0, store.get(key(0, 0), until.left()).orElse(null));
      }
      if (number > 0 && store.get(key(number - 1, rank), until.left()).isEmpty()
          && store.get(key(number, rank), until.left()).isEmpty()) {
        throw RoundFailures.left(rank);
      }
      Round.Presence others = number == 0 ? round.others() : null;
      if (others != null
          && !Arrays.equals(store.get(others.key(), until.left()).orElse(null), others.value())) {
        throw new OthersGoneException();
      }
    }
  }

  /** The failure of a round whose deadline has passed: names the ranks that have not come. */
  private WindlassException late() {
    Set<String> keys = Set.copyOf(store.keys(key(number, ""), LAST_WORD));
    List<Integer> missing =
        IntStream.range(0, size).filter(rank -> !keys.contains(key(number, rank))).boxed().toList();
    if (missing.isEmpty()) {
      missing = List.of(0); // all have come, and rank 0 is to say so
    }
    List<Integer> none = List.of();
    boolean isFirst = number == 0;
    return new RoundFailures.Missing(
            store.address(), size, isFirst ? missing : none, isFirst ? none : missing)
        .late(null);
  }

  private void requireNoFailure() {
    byte[] told = store.get(name + "/failed", until.left(LAST_WORD)).orElse(null);
    if (told != null) {
      throw failure(told);
    }
  }

  private static WindlassException failure(byte[] told) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(told))) {
      int code = in.readInt();
      String message = in.readUTF();
      List<Integer> faultyRanks = new ArrayList<>();
      while (in.available() > 0 && faultyRanks.size() < Native.WL_MAX_RANKS) {
        faultyRanks.add(in.readInt());
      }
      return WindlassException.of(code, message, faultyRanks);
    } catch (IOException e) {
      return new MismatchException(
          "why the start failed can't be read; run one version of windlass on all ranks",
          List.of(0));
    }
  }

  /** Publishes a failure, and returns it, or the one that another process published before. */
  private WindlassException tell(WindlassException why) {
    byte[] told =
        Encoding.bytes(
            out -> {
              out.writeInt(why.code().number());
              out.writeUTF(why.getMessage());
              for (int rank : why.faultyRanks()) {
                out.writeInt(rank);
              }
            });
    return store.compareAndSet(name + "/failed", null, told, LAST_WORD)
        ? why
        : store.get(name + "/failed", LAST_WORD).map(RoundsByKeys::failure).orElse(why);
  }

  /** Removes what this process has said, once a round has failed. */
  private void cleanUp(boolean isCollector) {
    try {
      forget(number - 1);
      forget(number);
      if (isCollector) {
        awaitForgotten(Deadline.of(LAST_WORD));
        remove(name + "/failed");
      }
      round = null;
    } catch (RuntimeException e) {
      // The keys go with the lease.
    }
  }

  /** Ends the last round; rank 0's process keeps what it published until all have read it. */
  private void end(boolean isCollector) {
    if (isCollector) {
      awaitForgotten(until);
    }
    forget(number);
    round = null;
  }

  /** Waits until no other process holds a key of this round. */
  private void awaitForgotten(Deadline end) {
    Set<Integer> own = round.own().keySet();
    for (int rank = 0; rank < size; rank++) {
      byte[] said = null;
      do {
        said = own.contains(rank) ? null : store.get(key(number, rank), end.left()).orElse(null);
        if (said != null) {
          store.awaitOther(key(number, rank), said, end.left());
        }
      } while (said != null);
    }
  }

  /** Removes the keys of this process in a round. */
  private void forget(int past) {
    if (past < 0) {
      return;
    }
    for (int rank : round.own().keySet()) {
      remove(key(past, rank));
    }
    if (round.own().containsKey(0)) {
      store.keys(key(past, "all"), LAST_WORD).forEach(this::remove);
    }
  }

  private void remove(String key) {
    byte[] value = store.get(key, LAST_WORD).orElse(null);
    if (value != null) {
      store.compareAndSet(key, value, null, LAST_WORD);
    }
  }
}
