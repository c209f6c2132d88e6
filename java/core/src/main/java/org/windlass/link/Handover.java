// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.transfer.Until;
import org.windlass.report.Report;

/**
 * The handover of versions between the two jobs of a link. All ranks of both jobs begin a move
 * together, or none does. Rank 0 of each job talks to the other job until its deadline ({@link
 * Tickets}), and tells the result to the other ranks of its job ({@link LedCalls}). A side that
 * waits in vain loses nothing, and the link goes on.
 *
 * <p>Each time that the receivers ask, they take the next number as a ticket. Rank 0 of the
 * receivers sets {@code ASKED} to the ticket at the senders. If the senders then set {@code
 * OFFERED} to it, rank 0 sets {@code CONFIRMED}. At its deadline it sets {@code WITHDRAWN} instead.
 * Senders that have offered wait for one of both. If neither arrives before the senders' deadline,
 * the receivers hang, and the link ends. After {@code CONFIRMED} the ranks of both jobs move.
 *
 * <p>The end of the versions stays at rank 0 of the receivers, so that the senders may leave before
 * these ask.
 */
final class Handover implements AutoCloseable {
  private static final int ASKED = 0;
  private static final int CONFIRMED = 1;
  private static final int WITHDRAWN = 2;
  private static final int OFFERED = 3;
  private static final int SIGNALS = 4;

  /** Index of a word that the senders put at the receivers. */
  private static final int VERSION = 0;

  private static final int LEFT_NS = 1;
  private static final int NEWEST = 2;

  /** Registration for which the senders wait, {@link #NONE}, or {@link #FINISHED}. */
  private static final int WAITING = 3;

  private static final int WORDS = 4;

  static final long NONE = -1;

  /** Value that says that no version follows. Only rank 0 of the receivers has it. */
  private static final long FINISHED = -2;

  /**
   * Extra time after a deadline. Rank 0 uses it to send its result, and a move that began before
   * the deadline uses it to complete.
   */
  static final Duration GRACE = Duration.ofSeconds(2);

  /**
   * Time of a deadline that is kept for the move, at most half of it. A move has at least this
   * time.
   */
  static final Duration RESERVE = Duration.ofSeconds(1);

  /** Time for which a wait yields its core. It sleeps after that. */
  private static final long YIELDING_NS = 100_000;

  private static final long LONGEST_PAUSE_NS = 1_000_000;

  private final Communicator communicator;

  /** Ranks of this job. */
  private final LinkSide side;

  /** Rank 0 of the other job, as the link counts it. */
  private final int other;

  private final int firstReceiver;
  private final LedCalls calls;
  private final Window window;
  private final Signals signals;
  private final DistributedTensor words;

  /** Words to put at other ranks. */
  private final Tensor own = Tensor.allocate(DType.I64, WORDS);

  /** Last ticket that was settled. Used by rank 0 only. */
  private long ticket;

  /** Duration of the last move. */
  private long moveNs;

  /**
   * Creates the handover. Collective over both jobs.
   *
   * @param communicator senders first, then receivers
   * @param side the ranks of this job, in their order
   * @param senders number of senders
   */
  Handover(Communicator communicator, Communicator side, int senders, Until until) {
    this.communicator = communicator;
    this.firstReceiver = senders;
    int first = communicator.rank() < senders ? 0 : senders;
    int[] linked = IntStream.range(first, first + side.size()).toArray();
    this.side = new LinkSide(communicator, side, linked, "its job");
    this.other = communicator.rank() < senders ? senders : 0;
    long bytes = Signals.bytes(SIGNALS, communicator.size()) + WORDS * (long) Long.BYTES;
    calls = new LedCalls(this.side, GRACE, until);
    window = communicator.window(bytes, until.left());
    signals = window.signals(SIGNALS);
    words = window.tensor(DType.I64, WORDS);
    words.copyFrom(new long[] {NONE, 0, NONE, NONE});
    own.copyFrom(new long[] {NONE, 0, NONE, NONE});
  }

  LinkSide side() {
    return side;
  }

  LedCalls calls() {
    return calls;
  }

  /** Duration of the last move. */
  long moveNs() {
    return moveNs;
  }

  /**
   * Puts the newest version at every receiver, and the registration for which the senders wait or
   * {@link #NONE}.
   */
  void announce(long version, long waiting) {
    if (communicator.failure().isPresent()) {
      return; // which the call says that follows, or has said
    }
    for (int rank = firstReceiver; rank < communicator.size(); rank++) {
      put(rank, NEWEST, version, waiting);
    }
  }

  /** Returns true if the receivers ask for a version. */
  boolean isAsked() {
    while (signals.test(other, ASKED, ticket + 1) && signals.test(other, WITHDRAWN, ticket + 1)) {
      ticket++;
    }
    return signals.test(other, ASKED, ticket + 1);
  }

  /** Offers a version to receivers that have asked. Returns true. */
  boolean offer(long version, Until until) {
    ticket++;
    put(other, VERSION, version, until.leftNs());
    signals.notify(other, OFFERED, ticket);
    return true;
  }

  /** Waits until the receivers answer to the offer. Returns false if they withdraw. */
  boolean isConfirmed(Until until) {
    long startNs = System.nanoTime();
    while (!signals.test(other, CONFIRMED, ticket)) {
      if (signals.test(other, WITHDRAWN, ticket)) {
        return false;
      }
      if (until.isOver()) {
        throw side.failed(
            Native.WL_ABORTED,
            List.of(other),
            "the receivers have asked for a version, and don't answer to version "
                + own.getLong(VERSION) + ", which they were offered; see whether rank " + other
                + " is stopped");
      }
      pause(System.nanoTime() - startNs);
    }
    return true;
  }

  private void put(int rank, int first, long... values) {
    put(window, own, rank, words, first, values);
  }

  /**
   * Puts words at a rank.
   *
   * @param own tensor through which they pass, of the same shape as {@code words}
   */
  static void put(
      Window window, Tensor own, int rank, DistributedTensor words, int first, long... values) {
    for (int i = 0; i < values.length; i++) {
      own.setLong(values[i], first + i);
    }
    window.put(own.narrow(0, first, values.length), rank, words.narrow(0, first, values.length));
  }

  /** Returns once the receivers know of the end, or have left. The senders may leave then. */
  void finish(Until until) {
    long startNs = System.nanoTime();
    while (!isEndThere()) {
      if (until.isOver()) {
        throw side.failed(
            Native.WL_ABORTED, List.of(other), "the receivers don't get the end of the versions");
      }
      pause(System.nanoTime() - startNs);
    }
  }

  private boolean isEndThere() {
    boolean isAlive = communicator.failure().isEmpty();
    try {
      put(other, WAITING, FINISHED);
      window.get(own.narrow(0, WAITING, 1), other, words.narrow(0, WAITING, 1));
      return own.getLong(WAITING) == FINISHED;
    } catch (AbortedException e) {
      List<Report.Rank> ranks = communicator.report().ranks();
      List<Integer> left = e.faultyRanks();
      if (!isAlive
          || left.isEmpty()
          || !left.stream().allMatch(rank -> rank >= firstReceiver && ranks.get(rank).closed())) {
        throw e;
      }
      return true; // nobody is there who would ask
    }
  }

  /** Returns true if no version follows. For rank 0 of the receivers. */
  boolean haveFinished() {
    return words.getLong(WAITING) == FINISHED;
  }

  /** Asks the senders for a version. */
  void ask() {
    ticket++;
    signals.notify(other, ASKED, ticket);
  }

  boolean isOffered() {
    return signals.test(other, OFFERED, ticket);
  }

  /**
   * Takes the version that the senders have offered, or withdraws the ticket. Returns {@code
   * takes}.
   */
  boolean settle(boolean takes) {
    if (takes || communicator.failure().isEmpty()) {
      signals.notify(other, takes ? CONFIRMED : WITHDRAWN, ticket);
    }
    return takes;
  }

  /** Returns the version that the senders have offered. */
  long offered() {
    return words.getLong(VERSION);
  }

  /** Returns the time that the senders have for the move. */
  long offeredNs() {
    return words.getLong(LEFT_NS);
  }

  /** Throws if the link has failed, or if the other side has left it. */
  void requireAlive() {
    signals.test(other, OFFERED, 0);
  }

  void pause(long waitedNs) {
    if (waitedNs < YIELDING_NS) {
      Thread.yield();
    } else {
      LockSupport.parkNanos(Math.min(waitedNs / 4, LONGEST_PAUSE_NS));
    }
    if (Thread.interrupted()) {
      Thread thread = Thread.currentThread();
      thread.interrupt();
      throw side.failed(
          Native.WL_ABORTED,
          List.of(communicator.rank()),
          "thread \"" + thread.getName() + "\" was interrupted");
    }
  }

  /**
   * Ends a move, which fails on all ranks of this job if it fails on one. Collective over this job.
   *
   * @param has true if the move has succeeded on this rank
   * @param nanoseconds duration of the move; 0 if nothing has moved
   * @param until deadline of the move
   * @throws AbortedException if the move has failed on another rank of this job; it ends the link
   */
  void moved(boolean has, long nanoseconds, Until until) {
    moveNs = nanoseconds > 0 ? nanoseconds : moveNs;
    try {
      long[][] all = side.words(until.later(GRACE), Native.WL_OP_LINK_MOVE, has ? 1 : 0);
      List<Integer> without =
          IntStream.range(0, all.length)
              .filter(rank -> all[rank][0] == 0)
              .mapToObj(side::linked)
              .toList();
      if (has && !without.isEmpty()) {
        throw side.failed(
            Native.WL_ABORTED,
            without,
            "ranks " + without
                + (communicator.rank() >= firstReceiver
                    ? " have not got it, so that no rank of their job takes it"
                    : " have not sent it, so that it fails on all ranks of their job"));
      }
    } catch (WindlassException e) {
      if (has) {
        throw e; // otherwise the reason why this rank has it not says more
      }
    }
  }

  /** Returns the newest version that the senders have offered. For receivers; thread-safe. */
  OptionalLong newest() {
    long version = words.getLong(NEWEST);
    return version == NONE ? OptionalLong.empty() : OptionalLong.of(version);
  }

  /**
   * Returns true if the senders wait with a version of a registration. For receivers; thread-safe.
   */
  boolean isWaiting(long registration) {
    return words.getLong(WAITING) == registration && communicator.failure().isEmpty();
  }

  /** Releases the window. Idempotent. */
  @Override
  public void close() {
    calls.close();
    window.close();
    own.close();
  }
}
