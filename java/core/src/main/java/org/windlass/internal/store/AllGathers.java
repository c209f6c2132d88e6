// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;

/**
 * Manages the all-gathers at one {@link StoreServer}, by name. A round is complete once every rank
 * has contributed a value. In the first round, a rank that leaves may come again. If a rank leaves
 * later, or a request reaches its deadline, the all-gather fails for all ranks. Another all-gather
 * may then use the name. Only the server's thread may call this.
 */
final class AllGathers {
  /**
   * Longest time before the server logs which ranks are missing; at most a fourth of the deadline.
   */
  private static final long LONGEST_QUIET_NS = Duration.ofSeconds(10).toNanos();

  private static final int MOST_NAMES = 8192;
  private static final int MOST_FAILURES = 64;

  private final String address;
  private final Table table;
  private final Map<String, AllGather> byName = new HashMap<>();
  private long changes; // of the table, up to the last look

  /** Messages of the most recent failures, keyed by the name of the all-gather. */
  private final Map<String, String> failures = newest();

  private record Request(Session session, int id, long deadlineNs) {
    void noteRankZero() {
      session.reply(id, Wire.NOTE);
    }
  }

  private static final class AllGather {
    final String name;
    final Session[] sessions;
    final byte[][] said;
    final List<Request> waiting = new ArrayList<>();
    int count;
    long bytes; // of the values of this round
    boolean isFirstRound = true;
    boolean isLogged;
    long logNs;

    /** In the first round, keys that are present while the missing ranks may still come. */
    final Map<Session, Round.Presence> others = new HashMap<>();

    AllGather(String name, int size) {
      this.name = name;
      sessions = new Session[size];
      said = new byte[size][];
    }

    void add(Session session, int rank, byte[] value) {
      sessions[rank] = session;
      said[rank] = value;
      bytes += value.length;
      count++;
    }

    void forget(int rank) {
      bytes -= said[rank].length;
      said[rank] = null;
      sessions[rank] = null;
      count--;
    }

    long untilDeadlineNs(long nowNs) {
      return waiting.stream()
          .mapToLong(request -> request.deadlineNs - nowNs)
          .reduce(Long.MAX_VALUE, Math::min);
    }

    List<Integer> ranks(IntPredicate condition) {
      return IntStream.range(0, said.length).filter(condition).boxed().toList();
    }
  }

  static <V> Map<String, V> newest() {
    return new LinkedHashMap<>() {
      private static final long serialVersionUID = 1L;

      @Override
      protected boolean removeEldestEntry(Map.Entry<String, V> eldest) {
        return size() > MOST_FAILURES;
      }
    };
  }

  AllGathers(String address, Table table) {
    this.address = address;
    this.table = table;
  }

  /**
   * Adds the values of a session's ranks to a round. The session gets the result later.
   *
   * @param id identifier of the request, for the reply
   * @throws MalformedException if one of the ranks already has a value in this round
   */
  void gather(Session session, int id, Round round) throws MalformedException {
    RuntimeException failure = session.unheard.remove(round.name());
    if (failure != null) {
      throw failure;
    }
    AllGather all = byName.get(round.name());
    if (all == null) {
      if (byName.size() == MOST_NAMES) {
        throw new ResourceException(
            "the store has " + MOST_NAMES + " starts, as many as it takes");
      }
      all = new AllGather(round.name(), round.size());
    }
    requireSize(all, round);
    requireFree(all, session, round);
    requireRoom(round);
    for (Map.Entry<Integer, byte[]> each : round.own().entrySet()) {
      all.add(session, each.getKey(), each.getValue());
    }
    byName.put(all.name, all);
    long now = System.nanoTime();
    long limitNs = round.limitMs() * 1_000_000;
    long logNs = now + Math.min(LONGEST_QUIET_NS, limitNs / 4);
    all.logNs = all.waiting.isEmpty() || logNs - all.logNs < 0 ? logNs : all.logNs;
    Request request = new Request(session, id, now + limitNs);
    all.waiting.add(request);
    if (all.count == all.said.length) {
      complete(all, round.isLast());
      return;
    }
    if (round.own().containsKey(0)) {
      all.waiting.stream().filter(other -> other != request).forEach(Request::noteRankZero);
    } else if (all.sessions[0] != null) {
      request.noteRankZero();
    }
    if (round.others() != null && all.isFirstRound) {
      all.others.put(session, round.others());
      if (!table.has(round.others())) {
        fail(all, new OthersGoneException());
      }
    }
  }

  private void requireSize(AllGather all, Round round) {
    if (all.sessions.length == round.size()) {
      return;
    }
    int other = round.own().keySet().iterator().next();
    int first =
        all.ranks(rank -> rank != other && all.sessions[rank] != null).stream()
            .findFirst()
            .orElseThrow(() -> RoundFailures.anotherProcess(other));
    WindlassException failure =
        RoundFailures.sizes(Map.of(first, all.sessions.length, other, round.size()));
    fail(all, failure);
    throw failure;
  }

  private static void requireFree(AllGather all, Session session, Round round)
      throws MalformedException {
    for (int rank : round.own().keySet()) {
      if (all.sessions[rank] != null && all.sessions[rank] != session) {
        throw RoundFailures.anotherProcess(rank);
      }
      if (all.said[rank] != null) {
        throw new MalformedException("a second value of rank " + rank + " in one round");
      }
    }
  }

  private void requireRoom(Round round) {
    long more = round.own().values().stream().mapToLong(value -> value.length).sum();
    long bytes = byName.values().stream().mapToLong(all -> all.bytes).sum();
    if (bytes + more > Limits.TOTAL) {
      throw Limits.full(bytes, more);
    }
  }

  private void complete(AllGather all, boolean isLast) {
    byte[] values = Encoding.bytes(out -> Encoding.putArrays(out, Arrays.asList(all.said)));
    all.waiting.forEach(request -> request.session.queueValues(request.id, values));
    all.waiting.clear();
    Arrays.fill(all.said, null);
    all.bytes = 0;
    all.count = 0;
    all.isFirstRound = false;
    all.others.clear();
    if (isLast) {
      byName.remove(all.name);
      failures.remove(all.name);
    }
  }

  private void fail(AllGather all, RuntimeException why) {
    byName.remove(all.name);
    failures.put(all.name, why.getMessage());
    Set<Session> others = new HashSet<>(Arrays.asList(all.sessions));
    others.remove(null);
    for (Request request : all.waiting) {
      others.remove(request.session);
      request.session.queueRefusal(request.id, why);
    }
    others.forEach(session -> session.unheard.put(all.name, why));
  }

  /** Ends a session's part in an all-gather. After the first round, the all-gather fails. */
  void quit(Session session, String name) {
    session.unheard.remove(name);
    AllGather all = byName.get(name);
    if (all == null) {
      return;
    }
    List<Integer> ranks = all.ranks(rank -> all.sessions[rank] == session);
    if (ranks.isEmpty()) {
      return;
    }
    all.waiting.removeIf(request -> request.session == session);
    if (all.isFirstRound) {
      ranks.forEach(all::forget);
      all.others.remove(session);
      if (all.count == 0) {
        byName.remove(name);
      }
    } else {
      ranks.forEach(rank -> all.sessions[rank] = null);
      fail(all, RoundFailures.left(ranks.get(0)));
    }
  }

  void leave(Session session) {
    List.copyOf(byName.keySet()).forEach(name -> quit(session, name));
  }

  /**
   * Fails all-gathers whose deadline has passed, or whose missing ranks can't come any more. Logs
   * the ranks that the others wait for.
   */
  void look(long nowNs) {
    boolean isChanged = changes != table.changes;
    changes = table.changes;
    for (AllGather all : List.copyOf(byName.values())) {
      if (isChanged && !all.others.values().stream().allMatch(table::has)) {
        fail(all, new OthersGoneException());
      } else if (all.untilDeadlineNs(nowNs) <= 0) {
        String before = failures.get(all.name);
        fail(all, missing(all).late(before));
        failures.put(all.name, missing(all).late(null).getMessage());
      } else if (!all.isLogged && !all.waiting.isEmpty() && nowNs - all.logNs >= 0) {
        all.isLogged = true;
        long leftNs = all.untilDeadlineNs(nowNs);
        Log.warn(
            "{0} so far; the start waits for {1} more",
            missing(all),
            Deadline.text(Duration.ofMillis(Math.max(1, leftNs / 1_000_000))));
      }
    }
  }

  /** Returns the nanoseconds until the next deadline, at most {@code mostNs}. */
  long untilNextNs(long nowNs, long mostNs) {
    return byName.values().stream()
        .mapToLong(all -> all.untilDeadlineNs(nowNs))
        .reduce(mostNs, Math::min);
  }

  private RoundFailures.Missing missing(AllGather all) {
    return new RoundFailures.Missing(
        address,
        all.said.length,
        all.ranks(rank -> all.sessions[rank] == null),
        all.ranks(rank -> all.sessions[rank] != null && all.said[rank] == null));
  }
}
