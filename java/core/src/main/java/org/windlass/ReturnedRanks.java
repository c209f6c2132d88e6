// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.Native;
import org.windlass.internal.Structs;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.report.RankLook;

/**
 * Finds ranks that wait forever for a rank whose body has returned. A returned rank calls no more
 * operations until the run is over. The only exception are asynchronous calls, which run on the
 * communicator's own thread.
 */
final class ReturnedRanks {
  /**
   * Largest number of records that one check reads. The check of one rank reads the records of all
   * ranks, so it covers {@code MOST_READ / size} ranks, but at least one.
   */
  private static final int MOST_READ = 64;

  private final List<Communicator> communicators;

  private @Nullable ByteBuffer state;

  private int next;

  private @Nullable Missing last;

  /**
   * An operation in which rank {@code waits} waits, and which rank {@code returned} has not
   * entered. Both are ranks of the run. {@code communicator} runs the operation.
   */
  private record Missing(Communicator communicator, String operation, int waits, int returned) {}

  ReturnedRanks(List<Communicator> communicators) {
    this.communicators = communicators;
  }

  /**
   * Checks once. If two consecutive checks find the same operation, aborts the operation's
   * communicator. {@code returned} has the ranks whose bodies have returned.
   */
  void look(List<Thread> threads, BitSet returned) {
    if (returned.isEmpty() || returned.cardinality() == communicators.size()) {
      return;
    }
    Missing found = find(threads, returned);
    if (found != null && found.equals(last)) {
      String reason =
          "of the group's ranks, rank " + found.waits + " is in " + found.operation + ", and rank "
              + found.returned + ", whose body has returned, never entered it; make the same"
              + " calls on every rank";
      boolean isOfRun = communicators.contains(found.communicator);
      // The missing rank may have closed its own handle of another communicator.
      (isOfRun ? communicators.get(found.returned - first()) : found.communicator).abort(reason);
    }
    last = found;
  }

  private int first() {
    return communicators.get(0).rank();
  }

  private @Nullable Missing find(List<Thread> threads, BitSet returned) {
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
   * Returns the operation in which a rank waits forever, in {@code communicator} or in a
   * communicator made from it; null if no rank does.
   *
   * @param ranks for each rank of {@code communicator}, its rank in the communicator of the run
   */
  private @Nullable Missing find(
      Communicator communicator, Thread body, int[] ranks, BitSet returned) {
    Endpoint endpoint = communicator.endpoint();
    boolean lives = communicator.failure().isEmpty();
    // Queued calls may complete in the next run, unless the body waits for them.
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

  private @Nullable Missing findIn(Communicator communicator, int[] ranks, BitSet returned) {
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

  /** Returns true if the rank's body has returned, and no other thread makes calls of the rank. */
  private boolean hasReturned(int rank, BitSet returned) {
    int index = rank - first();
    return index >= 0
        && index < communicators.size()
        && returned.get(index)
        && !communicators.get(index).endpoint().hasOwnThread();
  }

  private static boolean isBefore(RankLook look, int sequence) {
    // A rank that waits for a closed rank gets an exception. A one-sided operation has the number
    // of the last collective operation before it.
    return !look.closed()
        && (look.recorded().isEmpty() || look.recorded().get(0).sequence() - sequence < 0);
  }
}
