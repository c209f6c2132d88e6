// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.internal.Deadline;
import org.windlass.transfer.Transfer;

/**
 * The links of a {@link LinkTransfer}, each as a {@link LinkPart}. A version moves over all of them
 * or over none.
 */
final class LinkParts {
  private static final long ANY = Transfer.ANY_VERSION;
  private static final long FINISHED = Transfer.FINISHED;

  /**
   * All links: first those between jobs, then those within one communicator, both in the order of
   * their names. All ranks move over them in this order.
   */
  private final List<LinkPart> all;

  /** Links between jobs; at most 64. */
  private final List<LinkPart> led;

  /** Rounds of votes before each move; 0 without inner links. */
  private final int rounds;

  /** Link on which a move was tried last. If the last move has failed, it failed on this link. */
  private LinkPart failed;

  LinkParts(List<LinkPart> parts, int rounds) {
    this.rounds = rounds;
    led = parts.stream().filter(LinkPart::isLed).toList();
    Stream<LinkPart> within = parts.stream().filter(part -> !part.isLed());
    all = Stream.concat(led.stream(), within).toList();
    failed = all.get(0);
  }

  List<LinkPart> all() {
    return all;
  }

  LinkPart failed() {
    return failed;
  }

  boolean isFinished() {
    for (int i = 0; i < all.size(); i++) { // without an iterator, for each version
      if (all.get(i).link().isFinished()) {
        return true;
      }
    }
    return false;
  }

  /** Returns true if the senders of all links between jobs wait in a send. Thread-safe. */
  boolean isVersionOffered() {
    return led.stream().allMatch(LinkPart::isVersionOffered);
  }

  /** Returns the number of moves that have begun to write, over all links. Thread-safe. */
  long begun() {
    return all.stream().mapToLong(LinkPart::begun).sum();
  }

  /**
   * Moves a version over all links, once the other sides of all links have arrived. Nothing moves
   * if the senders of one link have finished, or if a side withdraws.
   *
   * @param half index of the receivers' memory half that gets the version: 0 or 1
   * @param wanted the version that this rank names, or {@link Transfer#ANY_VERSION}
   * @param version element 0 receives the version that has moved over the first links, even if the
   *     call throws; {@link Transfer#ANY_VERSION} if none has moved
   * @return a link whose other side did not arrive in time; null if there is none
   */
  @Nullable LinkPart move(int half, long wanted, long[] version, Deadline until) {
    version[0] = ANY;
    Tickets tickets = take(wanted, until);
    if (isFinished() || (!led.isEmpty() && tickets.version() == Handover.NONE)) {
      leave(0, half, tickets, until, null);
      int late = Long.numberOfTrailingZeros(tickets.late());
      return isFinished() || late >= led.size() ? null : led.get(late);
    }
    long named = tickets.named(wanted);
    for (int i = 0; i < all.size(); i++) {
      failed = all.get(i);
      long moved = version[0];
      try {
        Deadline moving = i < led.size() ? tickets.until() : until;
        failed.move(half, moved == ANY ? named : moved, version, moving);
        if (version[0] != FINISHED) {
          continue;
        }
        version[0] = moved;
        requireNothingMoved(failed, i == 0, named);
      } catch (RuntimeException | Error e) {
        leave(i + 1, half, tickets, until, e);
        if (i > 0) {
          // Ranks of the earlier links already use their next half, so no version may follow.
          failed.end(version[0], named, e, List.of());
        }
        throw e;
      }
      leave(i + 1, half, tickets, until, null);
      return null;
    }
    return null;
  }

  private Tickets take(long wanted, Deadline until) {
    if (led.isEmpty()) {
      return Tickets.NONE;
    }
    try {
      return Tickets.take(led, rounds, wanted, until);
    } catch (RuntimeException | Error e) {
      failed = Tickets.failed(led);
      throw e;
    }
  }

  /**
   * Throws if a link reports that no version follows, although a version has moved over other
   * links, or this rank sends one.
   */
  private static void requireNothingMoved(LinkPart part, boolean isFirst, long named) {
    boolean isLed = part.isLed();
    if (!isFirst || (!isLed && part.link().sends() && named >= 0)) {
      throw new AbortedException(
          isLed
              ? "version " + named + " was withdrawn over " + part.link()
                  + ", and has moved over the links before"
              : "senders have finished " + part.link() + " in place of version " + named);
    }
  }

  /**
   * Ends the move on the links from index {@code first} on, over which nothing moves. Ranks that
   * wait there learn that the version is withdrawn, or that the senders have finished.
   *
   * @param failure gets further failures as suppressed ones; null for none
   */
  private void leave(
      int first, int half, Tickets tickets, Deadline until, @Nullable Throwable failure) {
    for (int i = first; i < all.size(); i++) {
      boolean isLed = i < led.size();
      try {
        if (isLed ? tickets.moves(i) : failure == null && isFinished()) {
          all.get(i).move(half, FINISHED, new long[] {ANY}, isLed ? tickets.until() : until);
        }
      } catch (RuntimeException | Error e) {
        if (failure == null) {
          failed = all.get(i);
          leave(i + 1, half, tickets, until, e);
          throw e;
        }
        failure.addSuppressed(e);
      }
    }
  }
}
