// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.report.Report;

/**
 * Synchronizes the two jobs of a link, so that either all ranks of both jobs begin to move a
 * version, or no rank does. Rank 0 of each job talks to the other job until its deadline ({@link
 * Tickets}). It then sends the result to the other ranks of its job ({@link LedCalls}). If the
 * other job does not answer in time, nothing is lost, and the link goes on.
 *
 * <p>Each request of the receivers for a version has a number, the ticket. To request, rank 0 of
 * the receivers sets signal {@code ASKED} to the ticket at rank 0 of the senders. To offer a
 * version, the senders set {@code OFFERED} to that ticket. Rank 0 of the receivers then sets {@code
 * CONFIRMED}, and the ranks of both jobs move the version. If its deadline passes first, it sets
 * {@code WITHDRAWN} instead. Senders that have offered wait for {@code CONFIRMED} or {@code
 * WITHDRAWN}. If neither arrives before the senders' deadline, the receivers are assumed to hang,
 * and the link ends.
 *
 * <p>Over an inner link ({@link InnerLinks}), both sides then vote with {@code GO} and {@code
 * BACK}. The value of these signals is the number of the vote on this link.
 *
 * <p>Senders that finish report this to rank 0 of the receivers. They may then leave before the
 * receivers ask for a version.
 */
final class Handover implements AutoCloseable {
  private static final int ASKED = 0;
  private static final int CONFIRMED = 1;
  private static final int WITHDRAWN = 2;
  private static final int OFFERED = 3;
  private static final int GO = 4;
  private static final int BACK = 5;
  private static final int SIGNALS = 6;

  /** Index in {@link #words} of the offered version. Senders write words at receivers. */
  private static final int VERSION = 0;

  private static final int LEFT_NS = 1;
  private static final int NEWEST = 2;

  /**
   * Index in {@link #words} of the number of the registration whose senders wait in a send. The
   * word is {@link #NONE} if they don't wait, and {@link #FINISHED} if no version follows.
   */
  private static final int WAITING = 3;

  private static final int WORDS = 4;

  static final long NONE = -1;

  /** Value of the word {@link #WAITING}: no version follows. */
  private static final long FINISHED = -2;

  /**
   * Time after a deadline. In this time, rank 0 sends its result, and a move that began before the
   * deadline may complete.
   */
  static final Duration GRACE = Duration.ofSeconds(2);

  /**
   * Time at the end of a send's deadline that is reserved for the move, but at most half of the
   * deadline. A move gets at least this time.
   */
  static final Duration RESERVE = Duration.ofSeconds(1);

  /** Time for which a wait yields its core. After that, the wait sleeps. */
  private static final long YIELDING_NS = 100_000;

  private static final long LONGEST_PAUSE_NS = 1_000_000;

  private final Communicator communicator;

  private final LinkSide side;

  /** Rank number, in the link's communicator, of rank 0 of the other job. */
  private final int other;

  private final int firstReceiver;
  private final LedCalls calls;
  private final Window window;
  private final Signals signals;
  private final DistributedTensor words;

  private final Tensor own = Tensor.allocate(DType.I64, WORDS);

  /** Number of the last request that was confirmed or withdrawn. Used by rank 0 only. */
  private long ticket;

  /** Number of votes that each side has given on this link. Used by rank 0 only. */
  private long votes;

  /** Duration of the last move, in nanoseconds. */
  private long moveNs;

  /**
   * Creates the handover. Collective over both jobs.
   *
   * @param communicator ranks of both jobs: senders first, then receivers
   * @param side ranks of this job, in the same order
   * @param senders number of senders
   */
  Handover(Communicator communicator, Communicator side, int senders, Deadline until) {
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

  long moveNs() {
    return moveNs;
  }

  /**
   * Writes two numbers to every receiver. Only senders call it.
   *
   * @param version the newest version
   * @param waiting number of the registration whose senders wait in a send, or {@link #NONE}
   */
  void announce(long version, long waiting) {
    if (communicator.failure().isPresent()) {
      return; // which the call says that follows, or has said
    }
    for (int rank = firstReceiver; rank < communicator.size(); rank++) {
      put(rank, NEWEST, version, waiting);
    }
  }

  /**
   * Returns true if the receivers have asked for a version and have not withdrawn that request. For
   * rank 0 of the senders.
   */
  boolean isAsked() {
    while (signals.test(other, ASKED, ticket + 1) && signals.test(other, WITHDRAWN, ticket + 1)) {
      ticket++;
    }
    return signals.test(other, ASKED, ticket + 1);
  }

  /**
   * Offers a version to the receivers, which have asked for one. For rank 0 of the senders.
   *
   * @param until deadline for the move; the receivers get the time that is left
   * @return true
   */
  boolean offer(long version, Deadline until) {
    ticket++;
    put(other, VERSION, version, until.leftNs());
    signals.notify(other, OFFERED, ticket);
    return true;
  }

  /**
   * Waits for the receivers' answer to an offer. Returns false if they have withdrawn their
   * request. If they don't answer before {@code until}, ends the link and throws.
   */
  boolean isConfirmed(Deadline until) {
    return isFirst(
        CONFIRMED, WITHDRAWN, ticket, until,
        () -> "the receivers have asked for a version, but don't answer to version "
            + own.getLong(VERSION) + ", which they were offered");
  }

  /** Tells the other job whether a version may move ({@link Tickets}). For rank 0. */
  boolean vote(boolean isGo) {
    votes++;
    signals.notify(other, isGo ? GO : BACK, votes);
    return true;
  }

  /**
   * Waits for the other job's vote after {@link #vote}, and returns it. If it does not arrive
   * before {@code until}, ends the link and throws. For rank 0.
   */
  boolean isOtherForGo(Deadline until) {
    return isFirst(
        GO, BACK, votes, until,
        () -> "the other job has agreed to a version, but doesn't report whether it can move it");
  }

  /**
   * Waits until the other job sets one of two signals to {@code value}. Returns true if it is
   * {@code yes}.
   *
   * @param late message of the failure if neither is set before {@code until}
   */
  private boolean isFirst(int yes, int no, long value, Deadline until, Supplier<String> late) {
    long startNs = System.nanoTime();
    while (!signals.test(other, yes, value)) {
      if (signals.test(other, no, value)) {
        return false;
      }
      if (until.isOver()) {
        throw side.failed(
            Native.WL_ABORTED,
            List.of(other),
            late.get() + "; see whether rank " + other + " is stopped");
      }
      pause(System.nanoTime() - startNs);
    }
    return true;
  }

  private void put(int rank, int first, long... values) {
    put(window, own, rank, words, first, values);
  }

  /**
   * Copies {@code values} to a tensor on another rank, from index {@code first} on.
   *
   * @param own local buffer for the copy, of the same shape as {@code words}
   */
  static void put(
      Window window, Tensor own, int rank, DistributedTensor words, int first, long... values) {
    for (int i = 0; i < values.length; i++) {
      own.setLong(values[i], first + i);
    }
    window.put(own.narrow(0, first, values.length), rank, words.narrow(0, first, values.length));
  }

  /**
   * Reports to rank 0 of the receivers that no version follows. Returns once that rank has the
   * report, or the receivers have left. If neither happens before {@code until}, ends the link and
   * throws. This also ends a put to another host that would last longer.
   */
  void finish(Deadline until) {
    CompletableFuture<Void> late = new CompletableFuture<>();
    late.completeOnTimeout(null, until.leftNs(), TimeUnit.NANOSECONDS)
        .thenRun(
            () ->
                side.failed(
                    Native.WL_ABORTED, List.of(other),
                    "the receivers don't get the end of the versions"));
    try {
      long startNs = System.nanoTime();
      while (!isEndThere()) {
        pause(System.nanoTime() - startNs);
      }
    } finally {
      late.cancel(false);
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

  /** Returns true if the senders have finished. For rank 0 of the receivers. */
  boolean haveFinished() {
    return words.getLong(WAITING) == FINISHED;
  }

  /** Asks the senders for a version. Only rank 0 of the receivers calls this. */
  void ask() {
    ticket++;
    signals.notify(other, ASKED, ticket);
  }

  boolean isOffered() {
    return signals.test(other, OFFERED, ticket);
  }

  /**
   * Confirms the version that the senders have offered, or withdraws the request of {@link #ask}.
   * For rank 0 of the receivers. Returns {@code takes}, which is true to confirm.
   */
  boolean settle(boolean takes) {
    if (takes || communicator.failure().isEmpty()) {
      signals.notify(other, takes ? CONFIRMED : WITHDRAWN, ticket);
    }
    return takes;
  }

  /** Returns the version that the senders have offered. For rank 0 of the receivers. */
  long offered() {
    return words.getLong(VERSION);
  }

  /** Returns the nanoseconds that the senders had left for the move when they made their offer. */
  long offeredNs() {
    return words.getLong(LEFT_NS);
  }

  /** Throws the link's failure if the link has failed, or if the other job has left. */
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
   * Ends a move. If it has failed on one rank of this job, it fails on all of them. Collective over
   * this job.
   *
   * @param has true if the move has succeeded on this rank
   * @param nanoseconds duration of the move; 0 if nothing has moved
   * @param until deadline of the move
   * @throws AbortedException if the move has failed on another rank of this job; the link has then
   *     ended
   */
  void moved(boolean has, long nanoseconds, Deadline until) {
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

  /**
   * Returns the newest version that the senders have offered; empty before the first one. For
   * receivers; thread-safe.
   */
  OptionalLong newest() {
    long version = words.getLong(NEWEST);
    return version == NONE ? OptionalLong.empty() : OptionalLong.of(version);
  }

  /**
   * Returns true if the senders of a registration wait in a send, and the link has not failed. For
   * receivers; thread-safe.
   */
  boolean isWaiting(long registration) {
    return words.getLong(WAITING) == registration && communicator.failure().isEmpty();
  }

  @Override
  public void close() {
    calls.close();
    window.close();
    own.close();
  }
}
