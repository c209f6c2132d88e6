// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.ArrayList;
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

/**
 * The handover of versions between the two jobs of a link. All ranks of both jobs begin a move
 * together, or none does. Rank 0 of each job talks to the other job until its deadline, and tells
 * the result to the other ranks of its job. These wait a little longer. A side that waits in vain
 * loses nothing, and the link goes on.
 *
 * <p>Each receive has a ticket, which is the next number. Rank 0 of the receivers sets {@code
 * ASKED} to the ticket at the senders. If the senders then set {@code OFFERED} to it, rank 0 sets
 * {@code CONFIRMED}. At its deadline it sets {@code WITHDRAWN} instead. Senders that have offered
 * wait for one of both. If neither arrives before the senders' deadline, the receivers hang, and
 * the link ends. After {@code CONFIRMED} the ranks of both jobs move.
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

  private static final long NONE = -1;

  /** Value that says that no version follows. Only rank 0 of the receivers has it. */
  private static final long FINISHED = -2;

  // Outcomes that rank 0 sends to its job.
  private static final long FAILED = 0;
  private static final long LATE = 1;
  private static final long MOVES = 2;
  private static final long ENDS = 3;

  /**
   * Extra time after a deadline. Rank 0 uses it to send its result, and a move that began before
   * the deadline uses it to complete.
   */
  private static final Duration GRACE = Duration.ofSeconds(2);

  /**
   * Time of a deadline that is kept for the move, at most half of it. A move has at least this
   * time.
   */
  static final Duration RESERVE = Duration.ofSeconds(1);

  private static final long RESERVE_NS = RESERVE.toNanos();

  private static final long FIRST_PAUSE_NS = 20_000;
  private static final long LONGEST_PAUSE_NS = 1_000_000;

  private final Communicator communicator;

  /** Ranks of this job. */
  private final LinkSide side;

  /** Rank 0 of the other job, as the link counts it. */
  private final int other;

  private final int firstReceiver;
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
    window = communicator.window(bytes, until.left());
    signals = window.signals(SIGNALS);
    words = window.tensor(DType.I64, WORDS);
    words.copyFrom(new long[] {NONE, 0, NONE, NONE});
    own.copyFrom(new long[] {NONE, 0, NONE, NONE});
  }

  LinkSide side() {
    return side;
  }

  /**
   * Waits until the receivers ask for a version. Collective over the senders.
   *
   * @param registration number of the transfer's registration
   * @return deadline of the move that follows; null if the receivers have not asked in time
   */
  Until offer(long registration, long version, Until until) {
    long[] told = led(until, agreed -> offered(registration, version, agreed));
    requireAlike(told[0] != ENDS);
    return told[0] == LATE ? null : new Until(Math.max(1, told[1]));
  }

  /**
   * Asks for a version, and waits until the senders have one. Collective over the receivers.
   *
   * @param atEnd runs on every rank if the senders have finished
   * @return deadline of the move that follows; null if the senders have finished, or had no version
   *     in time
   */
  Until ask(Until until, Runnable atEnd) {
    long[] told = led(until, this::asked);
    if (told[0] == ENDS) {
      atEnd.run();
    }
    return told[0] == MOVES ? new Until(Math.max(1, told[1])).later(GRACE) : null;
  }

  /** Tells the receivers that no version follows. Collective over the senders. */
  void finish(Until until) {
    requireAlike(led(until, this::finished)[0] == ENDS);
  }

  private static void requireAlike(boolean isAlike) {
    if (!isAlike) {
      throw new AbortedException("some senders finish, and others send a version");
    }
  }

  /** A step of rank 0. It returns an outcome, and the time that is left for a move. */
  @FunctionalInterface
  private interface Step {
    long[] within(Until until);
  }

  /** Runs a step on rank 0, and returns its result on every rank. Collective over this job. */
  private long[] led(Until until, Step step) {
    long leastNs = until.leftNs(communicator);
    // The ranks of this job arrive at different times, so they wait a little longer for each other.
    Until coming = new Until(leastNs).later(GRACE);
    for (long[] each : side.words(coming, Native.WL_OP_LINK_MOVE, leastNs)) {
      leastNs = Math.min(leastNs, each[0]);
    }
    Until agreed = new Until(leastNs);
    long[] own = {FAILED, 0};
    try {
      if (side.rank() == 0) {
        own = step.within(agreed);
      }
    } catch (RuntimeException | Error e) {
      // Rank 0 ends the link before the other ranks of this job hear of it. Otherwise the link
      // would blame those.
      Link.end(communicator, "the handover", e, List.of());
      throw e;
    } finally {
      own = tell(agreed, own);
    }
    if (own[0] == FAILED) {
      throw failure();
    }
    return own;
  }

  private long[] tell(Until agreed, long[] own) {
    return side.words(agreed.later(GRACE), Native.WL_OP_LINK_MOVE, own)[0];
  }

  /** Returns why the link ended, on a rank whose rank 0 has failed. */
  private WindlassException failure() {
    return communicator
        .failure()
        .orElseGet(() -> new AbortedException("rank 0 of this job has failed in it"));
  }

  private long[] offered(long registration, long version, Until until) {
    announce(version, registration);
    try {
      long wholeNs = until.leftNs();
      long reserveNs = Math.min(wholeNs / 2, Math.max(RESERVE_NS, 2 * moveNs));
      long pauseNs = FIRST_PAUSE_NS;
      while (!until.isOver() && until.leftNs() > reserveNs) {
        if (signals.test(other, ASKED, ticket + 1)) {
          ticket++;
          // Both sides have arrived, so a passed deadline must not end the link.
          Until moving = new Until(Math.max(until.leftNs(), RESERVE_NS));
          if (isConfirmed(version, moving)) {
            return new long[] {MOVES, Math.max(moving.leftNs(), RESERVE_NS)};
          }
          pauseNs = FIRST_PAUSE_NS;
        } else {
          pauseNs = pause(pauseNs);
        }
      }
      return new long[] {LATE, 0};
    } finally {
      announce(version, NONE);
    }
  }

  /** Offers a version for the ticket. Returns false if the receivers withdraw it. */
  private boolean isConfirmed(long version, Until until) {
    if (signals.test(other, WITHDRAWN, ticket)) {
      return false;
    }
    put(other, VERSION, version);
    put(other, LEFT_NS, until.leftNs());
    signals.notify(other, OFFERED, ticket);
    long pauseNs = FIRST_PAUSE_NS;
    while (!signals.test(other, CONFIRMED, ticket)) {
      if (signals.test(other, WITHDRAWN, ticket)) {
        return false;
      }
      if (until.isOver()) {
        throw side.failed(
            Native.WL_ABORTED,
            List.of(other),
            "the receivers have asked for a version, and don't answer to version " + version
                + ", which they were offered; see whether rank " + other + " is stopped");
      }
      pauseNs = pause(pauseNs);
    }
    return true;
  }

  /**
   * Puts the newest version, and the registration for which the senders wait, at every receiver.
   */
  private void announce(long version, long waiting) {
    if (communicator.failure().isPresent()) {
      return; // which the call says that follows, or has said
    }
    for (int rank = firstReceiver; rank < communicator.size(); rank++) {
      put(rank, NEWEST, version);
      put(rank, WAITING, waiting);
    }
  }

  private void put(int rank, int word, long value) {
    own.setLong(value, word);
    window.put(own.narrow(0, word, 1), rank, words.narrow(0, word, 1));
  }

  /** Returns once the receivers know of the end, or have left. The senders may leave then. */
  private long[] finished(Until until) {
    long pauseNs = FIRST_PAUSE_NS;
    while (!isEndThere()) {
      if (until.isOver()) {
        throw side.failed(
            Native.WL_ABORTED, List.of(other), "the receivers don't get the end of the versions");
      }
      pauseNs = pause(pauseNs);
    }
    return new long[] {ENDS, 0};
  }

  private boolean isEndThere() {
    try {
      put(other, WAITING, FINISHED);
      window.get(own.narrow(0, WAITING, 1), other, words.narrow(0, WAITING, 1));
      return own.getLong(WAITING) == FINISHED;
    } catch (AbortedException e) {
      List<Integer> left = e.faultyRanks();
      if (left.isEmpty() || !left.stream().allMatch(rank -> rank >= firstReceiver)) {
        throw e;
      }
      return true; // nobody is there who would ask
    }
  }

  private boolean haveFinished() {
    return words.getLong(WAITING) == FINISHED;
  }

  private long[] asked(Until until) {
    try {
      return haveFinished() ? new long[] {ENDS, 0} : offeredTo(until);
    } catch (WindlassException e) {
      if (haveFinished()) {
        return new long[] {ENDS, 0}; // and have left since
      }
      throw e;
    }
  }

  private long[] offeredTo(Until until) {
    ticket++;
    signals.notify(other, ASKED, ticket);
    boolean isSettled = false;
    try {
      long pauseNs = FIRST_PAUSE_NS;
      while (!signals.test(other, OFFERED, ticket)) {
        if (haveFinished() || until.isOver()) {
          return new long[] {haveFinished() ? ENDS : LATE, 0};
        }
        pauseNs = pause(pauseNs);
      }
      signals.notify(other, CONFIRMED, ticket);
      isSettled = true;
      return new long[] {MOVES, words.getLong(LEFT_NS)};
    } finally {
      if (!isSettled && communicator.failure().isEmpty()) {
        signals.notify(other, WITHDRAWN, ticket);
      }
    }
  }

  private long pause(long pauseNs) {
    LockSupport.parkNanos(pauseNs);
    if (Thread.interrupted()) {
      Thread thread = Thread.currentThread();
      thread.interrupt();
      throw side.failed(
          Native.WL_ABORTED,
          List.of(communicator.rank()),
          "thread \"" + thread.getName() + "\" was interrupted");
    }
    return Math.min(2 * pauseNs, LONGEST_PAUSE_NS);
  }

  /**
   * Returns the ranks of the link on which the move failed. If there are any, the move fails on all
   * ranks of this job. Collective over this job, after a move.
   *
   * @param until deadline of the move
   */
  List<Integer> without(boolean has, Until until) {
    List<Integer> without = new ArrayList<>();
    long[][] all = side.words(until.later(GRACE), Native.WL_OP_LINK_MOVE, has ? 1 : 0);
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] == 0) {
        without.add(side.linked(rank));
      }
    }
    return without;
  }

  /** Sets the duration of the last move. */
  void moved(long nanoseconds) {
    moveNs = nanoseconds;
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
    window.close();
    own.close();
  }
}
