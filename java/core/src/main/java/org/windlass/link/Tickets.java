// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.transfer.Transfer;

/**
 * Result of {@link Handover} over the links of a transfer, of which there are at most 64. Bit i of
 * a mask is for link i. All ranks of a job get the same result.
 *
 * @param moves mask of the links on which both sides have agreed. If {@code version} is {@link
 *     Handover#NONE}, this job withdraws the version from these links
 * @param late mask of the links whose other side did not arrive in time
 * @param ended mask of the links whose senders have finished
 * @param version the version that senders offer; {@link Handover#NONE} if none moves. If the
 *     senders of several links offer different versions, it is {@code SEVERAL - v}, where v is an
 *     offered version that differs from the version of the first link
 * @param until deadline of the move
 */
record Tickets(long moves, long late, long ended, long version, Deadline until) {
  /** Longest time that receivers make senders with an offer wait for the senders of other links. */
  private static final long LONGEST_HOLD_NS = Handover.RESERVE.toNanos() / 2;

  private static final long SEVERAL = Handover.NONE - 1;

  /**
   * A result whose masks are all empty. If rank 0 has failed, it sends this to the other ranks of
   * its job.
   */
  static final Tickets NONE = still(0, 0);

  private static Tickets still(long late, long ended) {
    return new Tickets(0, late, ended, Handover.NONE, Deadline.of(1));
  }

  /** Returns true if both sides of link number {@code part} have agreed. */
  boolean moves(int part) {
    return (moves >> part & 1) != 0;
  }

  /**
   * Returns the version that this rank passes to the move, on all links, if it wants {@code
   * wanted}. If the senders of the links offer different versions, the result makes the move over
   * the first link fail before any data moves.
   */
  long named(long wanted) {
    if (version < Handover.NONE) {
      return SEVERAL - version;
    }
    return wanted != Transfer.ANY_VERSION ? wanted : version;
  }

  /**
   * Synchronizes this job with the other jobs of all links. Also marks links whose senders have
   * finished. Collective over this job.
   *
   * @param rounds rounds of votes with the transfers behind inner links
   * @param version the version that this rank sends; ignored on a receiver
   */
  static Tickets take(List<LinkPart> parts, int rounds, long version, Deadline until) {
    boolean isSender = parts.get(0).link().sends();
    Tickets tickets =
        lead(parts, until, agreed -> isSender ? offer(parts, version, agreed) : ask(parts, agreed));
    requireAlike(!isSender || tickets.ended == 0);
    for (int i = 0; i < parts.size(); i++) {
      if ((tickets.ended >> i & 1) != 0) {
        parts.get(i).link().setFinished();
      }
    }
    return rounds == 0 || tickets.moves == 0
        ? tickets
        : lead(parts, tickets.until, agreed -> tickets.voted(parts, rounds, agreed));
  }

  /**
   * Votes with the jobs behind inner links on whether the version moves. In each round, a job
   * reports to the jobs at the other ends of its links whether all jobs that it knows of can move.
   * So if one job must withdraw the version, all of them know this after the last round. For rank
   * 0.
   */
  private Tickets voted(List<LinkPart> parts, int rounds, Deadline until) {
    List<LinkPart> voting =
        IntStream.range(0, parts.size())
            .filter(this::moves)
            .mapToObj(parts::get)
            .filter(LinkPart::isInner)
            .toList();
    boolean isGo = version != Handover.NONE;
    for (int round = 0; round < rounds; round++) {
      boolean own = isGo;
      bits(voting, part -> lives(() -> part.handover().vote(own)));
      isGo &=
          bits(voting, part -> lives(() -> part.handover().isOtherForGo(until))) == all(voting);
    }
    Deadline moving = until.orLonger(Handover.RESERVE.multipliedBy(parts.size()));
    return new Tickets(moves, late, ended, isGo ? version : Handover.NONE, moving);
  }

  /** Reports to the receivers of a link that no version follows. Collective over the senders. */
  static void finish(LinkPart part, Deadline until) {
    Function<Deadline, Tickets> finish =
        agreed -> {
          part.handover().finish(agreed);
          return still(0, 1);
        };
    requireAlike(lead(List.of(part), until, finish).ended != 0);
  }

  private static void requireAlike(boolean isAlike) {
    if (!isAlike) {
      throw new AbortedException("some senders finish, and others send a version");
    }
  }

  /** Runs {@code call} on rank 0 of this job, and returns its result on all ranks of the job. */
  private static Tickets lead(
      List<LinkPart> parts, Deadline until, Function<Deadline, Tickets> call) {
    Function<Deadline, long[]> led =
        agreed -> {
          try {
            return call.apply(agreed).words();
          } catch (RuntimeException | Error e) {
            // Rank 0 ends the link before the other ranks of this job get the result. Otherwise the
            // message of the link's failure would name those ranks.
            Link.end(failed(parts).link().communicator(), "the handover", e, List.of());
            throw e;
          }
        };
    long leftNs = parts.stream().mapToLong(part -> part.leftNs(until)).min().orElseThrow();
    long[] words = parts.get(0).handover().calls().make(leftNs, NONE.words(), led);
    if ((words[0] | words[1] | words[2]) == 0) {
      throw failed(parts)
          .link()
          .communicator()
          .failure()
          .orElseGet(() -> new AbortedException("rank 0 of this job has failed in it"));
    }
    return new Tickets(words[0], words[1], words[2], words[3], Deadline.of(words[4]));
  }

  /** Returns the first link that has failed; the first link if no link has failed. */
  static LinkPart failed(List<LinkPart> parts) {
    return parts.stream()
        .filter(part -> part.link().communicator().failure().isPresent())
        .findFirst()
        .orElse(parts.get(0));
  }

  private long[] words() {
    return new long[] {moves, late, ended, version, until.leftNs()};
  }

  /**
   * Returns a mask with a bit for each link that fulfils {@code isSo}. Tests all links, even if one
   * does not fulfil it.
   */
  private static long bits(List<LinkPart> parts, Predicate<LinkPart> isSo) {
    long bits = 0;
    for (int i = 0; i < parts.size(); i++) {
      bits |= isSo.test(parts.get(i)) ? 1L << i : 0;
    }
    return bits;
  }

  /**
   * Returns the result of a step on a link; false if it throws. The version is then withdrawn over
   * the other links, and the next request for a version throws the failure.
   */
  private static boolean lives(BooleanSupplier step) {
    try {
      return step.getAsBoolean();
    } catch (WindlassException e) {
      return false;
    }
  }

  private static long all(List<LinkPart> parts) {
    return bits(parts, part -> true);
  }

  /**
   * Returns the result after a deadline has passed. Links in the mask {@code there} are not late,
   * unless all links are in it.
   */
  private static Tickets late(List<LinkPart> parts, long there) {
    return still(there == all(parts) ? there : all(parts) & ~there, 0);
  }

  /** Offers a version once the receivers of all links ask for one. For rank 0 of the senders. */
  private static Tickets offer(List<LinkPart> parts, long version, Deadline until) {
    long wholeNs = until.leftNs();
    long moveNs = parts.stream().mapToLong(part -> part.handover().moveNs()).sum();
    long reserveNs = Math.min(wholeNs / 2, Math.max(Handover.RESERVE.toNanos(), 2 * moveNs));
    Deadline asking = Deadline.of(wholeNs - reserveNs);
    Duration least = Handover.RESERVE.multipliedBy(parts.size());
    try {
      parts.forEach(part -> part.announce(version, true));
      while (await(parts, asking, part -> part.handover().isAsked())) {
        // Both sides have arrived, so a passed deadline must not end the link.
        Deadline moving = until.orLonger(least);
        bits(parts, part -> lives(() -> part.handover().offer(version, moving)));
        // The other ranks of this job wait for no more than GRACE beyond the deadline.
        Deadline confirming = until.orLonger(Handover.RESERVE);
        long taken = bits(parts, part -> lives(() -> part.handover().isConfirmed(confirming)));
        if (taken != 0) {
          long all = taken == all(parts) ? version : Handover.NONE;
          return new Tickets(taken, 0, 0, all, moving.orLonger(least));
        }
      }
      return late(parts, bits(parts, part -> part.handover().isAsked()));
    } finally {
      parts.forEach(part -> part.announce(version, false));
    }
  }

  /** Asks for a version, and takes it once all links offer one. For rank 0 of the receivers. */
  private static Tickets ask(List<LinkPart> parts, Deadline until) {
    boolean isOne = parts.size() == 1;
    try {
      while (!until.isOver()
          && ended(parts) == 0
          && (isOne || await(parts, until, Tickets::isThere))) {
        Deadline asking = isOne ? until : Deadline.of(Math.min(until.leftNs(), LONGEST_HOLD_NS));
        boolean isOffered = false;
        long taken = 0;
        try {
          parts.forEach(part -> part.handover().ask());
          isOffered =
              await(parts, asking, part -> part.handover().isOffered())
                  // By now, senders may wait in a send of another transfer.
                  && (isOne || bits(parts, Tickets::isThere) == all(parts));
        } finally {
          boolean takes = isOffered;
          taken = bits(parts, part -> lives(() -> part.handover().settle(takes)));
        }
        if (taken != 0) {
          return offered(parts, taken);
        }
      }
    } catch (WindlassException e) {
      if (ended(parts) == 0) {
        throw e; // otherwise the senders have finished, and then left
      }
    }
    return ended(parts) == 0
        ? late(parts, bits(parts, LinkPart::isVersionOffered))
        : still(0, ended(parts));
  }

  /**
   * Returns the result if all senders have offered a version. {@code taken} is a mask of the links
   * that took it.
   */
  private static Tickets offered(List<LinkPart> parts, long taken) {
    long leftNs = parts.stream().mapToLong(part -> part.handover().offeredNs()).min().orElseThrow();
    long first = parts.get(0).handover().offered();
    long version =
        parts.stream()
            .mapToLong(part -> part.handover().offered())
            .filter(offered -> offered != first)
            .map(other -> SEVERAL - other)
            .findFirst()
            .orElse(first);
    Deadline until = Deadline.of(leftNs).later(Handover.GRACE);
    return new Tickets(taken, 0, 0, taken == all(parts) ? version : Handover.NONE, until);
  }

  private static long ended(List<LinkPart> parts) {
    return bits(parts, part -> part.handover().haveFinished());
  }

  private static boolean isThere(LinkPart part) {
    part.handover().requireAlive();
    return part.isVersionOffered();
  }

  /** Waits until all links fulfil {@code isSo}; false at the deadline, or if senders finish. */
  private static boolean await(List<LinkPart> parts, Deadline until, Predicate<LinkPart> isSo) {
    long startNs = System.nanoTime();
    while (bits(parts, isSo) != all(parts)) {
      if (until.isOver() || ended(parts) != 0) {
        return false;
      }
      parts.get(0).handover().pause(System.nanoTime() - startNs);
    }
    return true;
  }
}
