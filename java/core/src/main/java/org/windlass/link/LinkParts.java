// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.internal.transfer.Until;
import org.windlass.transfer.Transfer;

/** The parts of a {@link LinkTransfer}. A version moves over all of them or over none. */
final class LinkParts {
  private static final long ANY = Transfer.ANY_VERSION;
  private static final long FINISHED = Transfer.FINISHED;

  /**
   * Parts between jobs, and then those within one communicator, each in the order of their links'
   * names. All ranks move over them in this order.
   */
  private final List<LinkPart> all;

  /** Parts between jobs, at most 64. */
  private final List<LinkPart> led;

  /** Part in which the last move has failed. */
  private LinkPart failed;

  /** Creates the parts of links, which are in the order of their names. */
  LinkParts(List<LinkPart> parts) {
    led = parts.stream().filter(LinkPart::isLed).toList();
    Stream<LinkPart> within = parts.stream().filter(part -> !part.isLed());
    all = Stream.concat(led.stream(), within).toList();
    failed = all.get(0);
  }

  List<LinkPart> all() {
    return all;
  }

  /** Returns the part to which the exception of the last move belongs. */
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

  /** Returns true if the senders of all parts between jobs wait with a version. Thread-safe. */
  boolean isVersionOffered() {
    return led.stream().allMatch(LinkPart::isVersionOffered);
  }

  /** Returns the number of moves that have begun to write to targets. Thread-safe. */
  long begun() {
    return all.stream().mapToLong(LinkPart::begun).sum();
  }

  /**
   * Moves a version into a half, once the other sides of all links are there. Nothing has moved if
   * the senders of one have finished, or if a side has taken the version back.
   *
   * @param wanted the version that this rank names, or {@link Transfer#ANY_VERSION}
   * @param version receives the version that has moved over the first parts, even if the call
   *     throws; otherwise {@link Transfer#ANY_VERSION}
   * @return a part whose other side is late; null for none
   */
  @Nullable LinkPart move(int half, long wanted, long[] version, Until until) {
    version[0] = ANY;
    Tickets tickets = take(wanted, until);
    if (isFinished() || Long.bitCount(tickets.moves()) != led.size()) {
      leave(0, half, tickets, until, null);
      int late = Long.numberOfTrailingZeros(tickets.late());
      return isFinished() || late >= led.size() ? null : led.get(late);
    }
    long named = tickets.named(wanted);
    for (int i = 0; i < all.size(); i++) {
      failed = all.get(i);
      long moved = version[0];
      try {
        Until moving = i < led.size() ? tickets.until() : until;
        failed.move(half, moved == ANY ? named : moved, version, moving);
        if (version[0] != FINISHED) {
          continue;
        }
        version[0] = moved;
        requireNothingMoved(failed, i == 0, named);
      } catch (RuntimeException | Error e) {
        leave(i + 1, half, tickets, until, e);
        if (i > 0) {
          // Ranks of the links before have gone on to their next half, so no version may follow.
          failed.end(version[0], named, e, List.of());
        }
        throw e;
      }
      leave(i + 1, half, tickets, until, null);
      return null;
    }
    return null;
  }

  private Tickets take(long wanted, Until until) {
    if (led.isEmpty()) {
      return Tickets.NONE;
    }
    try {
      return Tickets.take(led, wanted, until);
    } catch (RuntimeException | Error e) {
      failed = Tickets.failed(led);
      throw e;
    }
  }

  /**
   * Throws if a version ended over a part, and this rank sends it or has moved it over an earlier
   * part.
   */
  private static void requireNothingMoved(LinkPart part, boolean isFirst, long named) {
    boolean isLed = part.isLed();
    if (!isFirst || (!isLed && part.link().sends() && named >= 0)) {
      throw new AbortedException(
          isLed
              ? "version " + named + " was taken back over " + part.link()
                  + ", and has moved over the links before"
              : "senders have finished " + part.link() + " in place of version " + named);
    }
  }

  /**
   * Leaves the parts from {@code first} on, over which nothing moves. Between jobs, the version is
   * taken back. Within one communicator, the other ranks learn that the senders have finished.
   *
   * @param failure failure of this call, or null
   */
  private void leave(
      int first, int half, Tickets tickets, Until until, @Nullable Throwable failure) {
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
