// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.List;
import java.util.stream.Collectors;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;

/** Creates the failures of a round of an all-gather at a store. */
final class RoundFailures {
  private static final String NO_OTHER_HOST = " (which no other host reaches: see /etc/hosts)";
  private static final int MOST_LISTED = 16;

  private RoundFailures() {}

  /** Returns the failure after a rank has left before the last round was complete. */
  static WindlassException left(int rank) {
    return new PeerLostException(
        "rank " + rank
            + " joined the start and left before all ranks had joined; see the output of its"
            + " process",
        List.of(rank));
  }

  /** Returns the failure after a second process has joined as the same rank. */
  static WindlassException anotherProcess(int rank) {
    return new MismatchException(
        "another process has joined this start as rank " + rank
            + " too, and is the one that counts; two processes can't have the same rank: start"
            + " all ranks again",
        List.of(rank));
  }

  /** Returns the failure after the process of a rank has written what can't be read. */
  static WindlassException unreadable(int rank) {
    return new MismatchException(
        "the ranks' messages at the start can't be read; run one version of windlass on all ranks",
        List.of(rank));
  }

  /** Returns the failure of two ranks that were started with different world sizes. */
  static WindlassException sizes(int one, int size, int other, int otherSize) {
    if (one > other) {
      return sizes(other, otherSize, one, size);
    }
    return new MismatchException(
        "rank " + one + " was started as one of " + size + " ranks, rank " + other + " as one of "
            + otherSize + "; set the same world size on all ranks (WINDLASS_WORLD_SIZE, or the"
            + " launcher's variable), and start the same number of ranks in each process",
        List.of(one, other));
  }

  /**
   * The ranks without a value in a round.
   *
   * @param address address of the store
   * @param size number of all ranks
   * @param isFirst true in the first round, where a rank without a value has never joined
   */
  record Missing(String address, int size, boolean isFirst, List<Integer> ranks) {
    /** Returns the exception for a round whose deadline has passed. */
    WindlassException late() {
      String advice =
          isFirst
              ? " when the deadline passed; see why they did not start, or give more time"
              : " when the deadline passed; see whether their processes are stopped, or give more"
                  + " time";
      return new DeadlineExceededException(this + advice, ranks);
    }

    @Override
    public String toString() {
      boolean isOfOneHost = address.startsWith("127.") && !address.startsWith("127.0.0.1:");
      String first =
          ranks.stream().limit(MOST_LISTED).map(String::valueOf).collect(Collectors.joining(", "));
      int more = ranks.size() - MOST_LISTED;
      return (ranks.size() == 1 ? "rank " : "ranks ") + first
          + (more > 0 ? " and " + more + " more" : "") + " of " + size
          + (isFirst
              ? " had not joined at " + address + (isOfOneHost ? NO_OTHER_HOST : "")
              : " had joined at " + address + ", but not continued with the others");
    }
  }
}
