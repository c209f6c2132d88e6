// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.function.Predicate;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.transfer.Until;

/**
 * Result of a handover over one link. All ranks of a job get the same one. Links whose versions
 * move together take tickets together, and hold none of their other sides while they wait for
 * another one.
 *
 * @param version the version that the senders offer; negative if none moves between two jobs
 * @param until deadline of the move
 */
record Ticket(Kind kind, long version, Until until) {
  enum Kind {
    /** Rank 0 of this job has failed. Only ranks of one job tell one another. */
    FAILED,

    /** The other side is not there. */
    LATE,

    /** The other side is there, and goes on to wait. */
    READY,

    /** Both sides go on to the move. */
    MOVES,

    /** The senders have finished. */
    ENDS
  }

  /** Longest time for which receivers hold senders that offer a version while others don't. */
  private static final long LONGEST_HOLD_NS = Handover.RESERVE.toNanos() / 2;

  boolean moves() {
    return kind == Kind.MOVES;
  }

  /**
   * Takes a ticket for each part. Collective over this job. If tickets of some parts are {@link
   * Kind#MOVES} and others not, this job must take the version back in the moves of the first ones.
   *
   * @param version the version that this rank sends
   */
  static List<Ticket> take(List<LinkPart> parts, boolean isSender, long version, Until until) {
    List<LinkPart> led = parts.stream().filter(part -> part.handover() != null).toList();
    Ticket within = new Ticket(Kind.MOVES, Handover.NONE, until);
    if (led.isEmpty()) {
      return parts.stream().map(part -> within).toList();
    }
    List<Ticket> taken =
        lead(led, until, agreed -> isSender ? offer(led, version, agreed) : ask(led, agreed));
    for (int i = 0; i < taken.size(); i++) {
      if (taken.get(i).kind == Kind.ENDS) {
        requireAlike(!isSender);
        led.get(i).link().setFinished();
      }
    }
    return parts.stream()
        .map(part -> led.contains(part) ? taken.get(led.indexOf(part)) : within)
        .toList();
  }

  /** Tells the receivers of a part that no version follows. Collective over the senders. */
  static void finish(LinkPart part, Until until) {
    List<LinkPart> one = List.of(part);
    Function<Until, List<Ticket>> finish =
        agreed -> {
          part.handover().finish(agreed);
          return still(one, each -> Kind.ENDS);
        };
    requireAlike(lead(one, until, finish).get(0).kind == Kind.ENDS);
  }

  private static void requireAlike(boolean isAlike) {
    if (!isAlike) {
      throw new AbortedException("some senders finish, and others send a version");
    }
  }

  /** Returns on all ranks of this job the tickets that {@code call} takes on rank 0. */
  private static List<Ticket> lead(
      List<LinkPart> parts, Until until, Function<Until, List<Ticket>> call) {
    List<Handover> links = parts.stream().map(LinkPart::handover).toList();
    long[][] told =
        LedCalls.make(
            links.stream().map(Handover::begin).toList(),
            links.stream().mapToLong(link -> link.leftNs(until)).min().orElseThrow(),
            new long[] {Kind.FAILED.ordinal(), Handover.NONE, 0},
            agreed -> {
              try {
                return call.apply(agreed).stream().map(Ticket::words).toArray(long[][]::new);
              } catch (RuntimeException | Error e) {
                Handover.end(links, e);
                throw e;
              }
            });
    List<Ticket> tickets = Arrays.stream(told).map(Ticket::of).toList();
    if (tickets.get(0).kind == Kind.FAILED) {
      throw Handover.failure(links);
    }
    return tickets;
  }

  private long[] words() {
    return new long[] {kind.ordinal(), version, until.leftNs()};
  }

  private static Ticket of(long[] words) {
    return new Ticket(Kind.values()[(int) words[0]], words[1], new Until(words[2]));
  }

  /** Returns tickets of parts over which nothing moves. */
  private static List<Ticket> still(List<LinkPart> parts, Function<LinkPart, Kind> kind) {
    Until none = new Until(1);
    return parts.stream().map(part -> new Ticket(kind.apply(part), Handover.NONE, none)).toList();
  }

  /** Returns tickets of parts of which none, or not all, have {@code isThere}. */
  private static List<Ticket> late(List<LinkPart> parts, Predicate<LinkPart> isThere) {
    boolean are = parts.stream().allMatch(isThere);
    return still(parts, part -> are || !isThere.test(part) ? Kind.LATE : Kind.READY);
  }

  /** On rank 0 of the senders: offers a version once the receivers of all parts ask for one. */
  private static List<Ticket> offer(List<LinkPart> parts, long version, Until until) {
    long wholeNs = until.leftNs();
    long moveNs = parts.stream().mapToLong(part -> part.handover().moveNs()).sum();
    long reserveNs = Math.min(wholeNs / 2, Math.max(Handover.RESERVE.toNanos(), 2 * moveNs));
    Until asking = new Until(wholeNs - reserveNs);
    parts.forEach(part -> part.announce(version, true));
    try {
      while (await(parts, asking, part -> part.handover().isAsked())) {
        // Both sides have arrived, so a passed deadline must not end the link.
        Duration least = Handover.RESERVE.multipliedBy(parts.size());
        Until moving = until.orLonger(least);
        parts.forEach(part -> part.handover().offer(version, moving));
        List<LinkPart> taken =
            parts.stream().filter(part -> part.handover().isConfirmed(moving)).toList();
        if (!taken.isEmpty()) {
          Ticket moves = new Ticket(Kind.MOVES, version, moving.orLonger(least));
          Ticket ready = new Ticket(Kind.READY, Handover.NONE, moving);
          return parts.stream().map(part -> taken.contains(part) ? moves : ready).toList();
        }
      }
      return late(parts, part -> part.handover().isAsked());
    } finally {
      parts.forEach(part -> part.announce(version, false));
    }
  }

  /** On rank 0 of the receivers: asks for a version, and takes it once all parts have one. */
  private static List<Ticket> ask(List<LinkPart> parts, Until until) {
    Predicate<LinkPart> isFinished = part -> part.handover().haveFinished();
    boolean isOne = parts.size() == 1;
    try {
      while (!until.isOver()
          && parts.stream().noneMatch(isFinished)
          && (isOne || await(parts, until, Ticket::isThere))) {
        Until asking = isOne ? until : new Until(Math.min(until.leftNs(), LONGEST_HOLD_NS));
        boolean isOffered = false;
        parts.forEach(part -> part.handover().ask());
        try {
          isOffered = await(parts, asking, part -> part.handover().isOffered());
        } finally {
          boolean takes = isOffered;
          parts.forEach(part -> part.handover().settle(takes));
        }
        if (isOffered) {
          return parts.stream().map(part -> part.handover().offered()).toList();
        }
      }
    } catch (WindlassException e) {
      if (parts.stream().noneMatch(isFinished)) {
        throw e; // otherwise the senders have finished, and then left
      }
    }
    return parts.stream().anyMatch(isFinished)
        ? still(parts, part -> isFinished.test(part) ? Kind.ENDS : Kind.READY)
        : late(parts, LinkPart::isVersionOffered);
  }

  private static boolean isThere(LinkPart part) {
    part.handover().requireAlive();
    return part.isVersionOffered();
  }

  /**
   * Waits until all parts have {@code isSo}. Returns false at the deadline, or once senders have
   * finished.
   */
  private static boolean await(List<LinkPart> parts, Until until, Predicate<LinkPart> isSo) {
    long startNs = System.nanoTime();
    while (true) {
      if (parts.stream().filter(isSo).toList().size() == parts.size()) { // asks each if it failed
        return true;
      }
      if (until.isOver() || parts.stream().anyMatch(part -> part.handover().haveFinished())) {
        return false;
      }
      parts.get(0).handover().pause(System.nanoTime() - startNs);
    }
  }
}
