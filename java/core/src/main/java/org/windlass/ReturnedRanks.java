// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.windlass.internal.Native;
import org.windlass.internal.Structs;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.report.RankLook;

/**
 * Ranks of a run whose bodies have returned. Nothing calls operations of such a rank until the run
 * is over, unless a thread of its communicators' own did before: whoever waits for it waits in vain.
 */
final class ReturnedRanks {
  /** A look at one rank reads the records of all; so many are read each time, about. */
  private static final int MOST_READ = 64;

  private final List<Communicator> communicators;

  /** For one rank's state; made on first use. */
  private ByteBuffer state;

  /** The rank that the next look begins with. */
  private int next;

  /** What the last look found, or null. */
  private Missing last;

  /**
   * An operation in which one rank of the run waits, and to which another has not come.
   *
   * @param communicator of the rank that waits
   */
  private record Missing(Communicator communicator, String operation, int waits, int returned) {}

  ReturnedRanks(List<Communicator> communicators) {
    this.communicators = communicators;
  }

  /**
   * Looks once, some time after the last look. What both find lasts, and aborts the
   * communicator of that operation.
   *
   * @param threads of the communicators' ranks
   * @param returned which of them have bodies that have returned
   */
  void look(List<Thread> threads, BitSet returned) {
    if (returned.isEmpty() || returned.cardinality() == communicators.size()) {
      return;
    }
    Missing found = find(threads, returned);
    if (found != null && found.equals(last)) {
      String reason =
          "of the group's ranks, rank " + found.waits + " is in " + found.operation + ", and rank "
              + found.returned + ", whose body has returned, never came to it; have every rank make the"
              + " same calls";
      boolean isOfRun = communicators.contains(found.communicator);
      // In another communicator the rank that is missing may have dropped its own.
      (isOfRun ? communicators.get(found.returned - first()) : found.communicator).abort(reason);
    }
    last = found;
  }

  private int first() {
    return communicators.get(0).rank();
  }

  private Missing find(List<Thread> threads, BitSet returned) {
    int size = communicators.size();
    int[] ranks = IntStream.range(0, communicators.get(0).size()).toArray();
    int looks = Math.max(1, MOST_READ / ranks.length);
    int begin = last == null ? next : last.waits - first();
    for (int i = 0; i < size && looks > 0; i++) {
      int index = (begin + i) % size;
      if (!returned.get(index)) {
        looks--;
        next = index + 1;
        Missing found = find(communicators.get(index), threads.get(index), ranks, returned);
        if (found != null) {
          return found;
        }
      }
    }
    return null;
  }

  /**
   * What a rank waits for in vain, in a communicator or in one that it has come to from there.
   *
   * @param body the thread of the rank's body
   * @param ranks for each rank of the communicator its rank of the run
   */
  private Missing find(Communicator communicator, Thread body, int[] ranks, BitSet returned) {
    Endpoint endpoint = communicator.endpoint();
    boolean lives = communicator.failure().isEmpty();
    // What is queued may end in the next run, unless the body waits for it.
    if (lives && !endpoint.hasQueuedBeside(body) && awaited(endpoint) != RankLook.NOBODY) {
      Missing found = findIn(communicator, ranks, returned);
      if (found != null) {
        return found;
      }
    }
    for (Communicator child : communicator.children()) {
      int[] former =
          RankLook.former(child.endpoint()).stream().mapToInt(r -> ranks[r]).toArray();
      Missing found = former.length == child.size() ? find(child, body, former, returned) : null;
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private int awaited(Endpoint endpoint) {
    if (state == null) {
      state = Structs.allocate(Structs.RankState.SIZE);
    }
    return RankLook.awaited(endpoint, state);
  }

  private Missing findIn(Communicator communicator, int[] ranks, BitSet returned) {
    List<RankLook> all = RankLook.all(communicator.endpoint());
    RankLook own = all.get(communicator.rank());
    if (own.recorded().isEmpty() || !own.recorded().get(0).inside()) {
      return null;
    }
    RankLook.Recorded inside = own.recorded().get(0);
    for (int rank = 0; rank < ranks.length; rank++) {
      boolean isAwaited =
          inside.uncounted()
              ? own.awaited() == rank && inside.operation() == Native.WL_OP_WAIT
              : isBefore(all.get(rank), inside.sequence());
      if (isAwaited && hasReturned(ranks[rank], returned)) {
        String operation =
            inside.uncounted()
                ? "a signal's await"
                : Native.wl_operation_name(inside.operation()) + " #"
                    + Integer.toUnsignedString(inside.sequence());
        return new Missing(communicator, operation, ranks[communicator.rank()], ranks[rank]);
      }
    }
    return null;
  }

  /** Whether its body has returned, and no thread but that body's ever made a call of it. */
  private boolean hasReturned(int rank, BitSet returned) {
    int index = rank - first();
    return index >= 0
        && index < communicators.size()
        && returned.get(index)
        && !communicators.get(index).endpoint().hasOwnThread();
  }

  /** Whether a rank that makes no more calls has not come to that operation. */
  private static boolean isBefore(RankLook look, int sequence) {
    // Whoever waits for one that has closed is told that. A one-sided operation has the number of the
    // last one before that all ranks come to.
    return !look.closed()
        && (look.recorded().isEmpty() || look.recorded().get(0).sequence() - sequence < 0);
  }
}
