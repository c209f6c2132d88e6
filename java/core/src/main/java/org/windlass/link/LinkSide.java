// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.windlass.Communicator;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;

/**
 * The ranks that send over a link, or the ranks that receive. They have a communicator of their
 * own. If this communicator fails, the link ends on all ranks, and the message of the failure uses
 * the rank numbers of {@code link}.
 *
 * @param link communicator of the link
 * @param communicator ranks of this side
 * @param linked for each rank of this side, in order, its rank number in {@code link}; ascending
 * @param name the side's name in messages, such as "their job"
 */
record LinkSide(Communicator link, Communicator communicator, int[] linked, String name) {
  int rank() {
    return communicator.rank();
  }

  int size() {
    return linked.length;
  }

  int linked(int rank) {
    return linked[rank];
  }

  /** Gathers {@code words} of all ranks of the side. Collective over the side. */
  long[][] words(Deadline until, int operation, long... words) {
    return on(() -> Gathered.words(communicator, until::leftNs, operation, words));
  }

  /**
   * Runs {@code call}, which uses {@link #communicator}, and returns its result. If that
   * communicator fails, ends the link and throws the link's failure.
   */
  <T> T on(Supplier<T> call) {
    try {
      return call.get();
    } catch (WindlassException e) {
      // If the side's communicator stays alive after an exception, the exception has no rank
      // numbers of the side.
      boolean isOver =
          communicator.failure().filter(record -> record.code() == e.code()).isPresent();
      throw isOver ? linked(e) : e;
    }
  }

  /**
   * Ends the link on all ranks, unless it has ended before. Returns its failure.
   *
   * @param code a {@code wl_code}
   * @param ranks the faulty ranks, as numbered in the link
   */
  WindlassException failed(int code, List<Integer> ranks, String message) {
    link.endpoint().fail(code, ranks, message);
    return link.failure()
        .orElseGet(() -> WindlassException.of(code, message, null, "", ranks));
  }

  private WindlassException linked(WindlassException failure) {
    int code = failure.code().number();
    if (code == Native.WL_CLOSED) {
      return failure; // this rank leaves, and the link with it
    }
    List<Integer> ranks = failure.faultyRanks().stream().map(rank -> linked[rank]).toList();
    String message =
        whose(failure.faultyRanks(), ranks) + ". In the numbers of " + name + ": "
            + failure.getMessage();
    // DeadlineExceeded would mean that the link stays usable, but this link has ended.
    int told = code == Native.WL_DEADLINE_EXCEEDED ? Native.WL_ABORTED : code;
    WindlassException whole = failed(told, ranks, message);
    whole.addSuppressed(failure);
    return whole;
  }

  private String whose(List<Integer> faultyRanks, List<Integer> ranks) {
    if (faultyRanks.size() == 1) {
      return "rank " + ranks.get(0) + " failed " + name + ", where it is rank "
          + faultyRanks.get(0);
    }
    List<Integer> all = Arrays.stream(linked).boxed().toList();
    List<Integer> shown = ranks.isEmpty() ? all : ranks;
    List<Integer> counted =
        ranks.isEmpty() ? all.stream().map(all::indexOf).toList() : faultyRanks;
    return "ranks " + list(shown) + (ranks.isEmpty() ? " failed as " + name : " failed " + name)
        + ", where they are ranks " + list(counted);
  }

  private static String list(List<Integer> ranks) {
    return ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
  }
}
