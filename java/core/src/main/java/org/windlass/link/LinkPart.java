// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.transfer.Replicas;
import org.windlass.internal.transfer.TransferHandle;
import org.windlass.transfer.Progress;
import org.windlass.transfer.Transfer;

/**
 * Moves versions of a {@link LinkTransfer} over one of its links. Only one thread at a time may
 * call it, unless a method says otherwise.
 */
final class LinkPart {
  private static final long ANY = Transfer.ANY_VERSION;
  private static final long FINISHED = Transfer.FINISHED;

  /** Exceptions of a move that all ranks throw alike, so that the link stays usable. */
  private static final List<Class<? extends WindlassException>> SHARED =
      List.of(MismatchException.class, VerificationFailedException.class);

  private final Link link;
  private final int registration;

  /**
   * One transfer for each memory half of the receivers. Versions alternate between the halves. If a
   * receiver receives in place, both transfers write to the same memory.
   */
  private final List<Transfer> transfers;

  private final List<Checksums> checksums = new ArrayList<>();

  private final boolean isInner;

  /**
   * Returns the names of this rank's targets that the last move wrote only in part before it
   * failed.
   */
  private Supplier<List<String>> incomplete = List::of;

  /** Exception that all ranks of the link threw before any data moved; null for none. */
  private @Nullable UnsupportedException unsupported;

  /** The transfer that ran last. Any thread may read it. */
  private volatile Transfer latest;

  LinkPart(Link link, List<Transfer> transfers, boolean checked, boolean isInner) {
    this.link = link;
    this.registration = link.nextRegistration();
    this.transfers = List.copyOf(transfers);
    this.latest = transfers.get(0);
    this.isInner = isInner;
    if (checked) {
      transfers.forEach(
          transfer -> checksums.add(new Checksums(link.communicator(), transfer)));
    }
  }

  void checkSources(Deadline until) {
    if (!checksums.isEmpty()) {
      checksums.get(0).checkSources(until);
    }
  }

  Link link() {
    return link;
  }

  int halves() {
    return transfers.size();
  }

  Transfer transfer(int half) {
    return transfers.get(half);
  }

  /** Returns the number of moves that have begun to write; thread-safe. */
  long begun() {
    return transfers.stream().mapToLong(Transfer::begun).sum();
  }

  /** Returns true if the link is between two jobs, and false if it is within one communicator. */
  boolean isLed() {
    return link.handover() != null;
  }

  /** Returns true if both jobs of the link have transfers over other links too. */
  boolean isInner() {
    return isInner;
  }

  Handover handover() {
    return Objects.requireNonNull(link.handover());
  }

  long leftNs(Deadline until) {
    long leftNs = until.leftNs();
    return leftNs == Deadline.DEFAULT ? Deadline.nanos(link.communicator().deadline()) : leftNs;
  }

  /**
   * Reports two facts to all receivers: the newest version, and whether the senders wait in a send
   * of it.
   */
  void announce(long version, boolean isWaiting) {
    handover().announce(version, isWaiting ? registration : Handover.NONE);
  }

  /**
   * Moves a version, and verifies it if checksums are on. Collective over the link. Between two
   * jobs, the call fails on all ranks of a job if it fails on one.
   *
   * @param half index of the receivers' memory half that gets the version: 0 or 1
   * @param named a version, {@link Transfer#ANY_VERSION}, or {@link Transfer#FINISHED}. If any rank
   *     names {@code FINISHED}, no data moves
   * @param version element 0 receives the version that the ranks agree on, or {@code FINISHED}. If
   *     the call throws before the ranks agree, the element is unchanged
   */
  void move(int half, long named, long[] version, Deadline until) {
    incomplete = List::of;
    if (!isLed()) {
      moveHere(half, named, version, until);
      return;
    }
    boolean isDone = false;
    long startNs = System.nanoTime();
    try {
      moveHere(half, named, version, until);
      isDone = true;
    } catch (RuntimeException | Error e) {
      end(version[0], named, e, shared(e)); // for those of this job that still move it
      throw e;
    } finally {
      handover().moved(isDone, version[0] < 0 ? 0 : System.nanoTime() - startNs, until);
    }
  }

  private void moveHere(int half, long named, long[] version, Deadline until) {
    latest = transfers.get(half);
    incomplete = latest::incomplete;
    if (checksums.isEmpty()) {
      transfer(named, version, until);
      return;
    }
    Checksums.Failure failure = moveAndVerify(half, named, version, until);
    if (failure != null) {
      incomplete = failure::wrong;
      throw failure.exception();
    }
  }

  private void transfer(long named, long[] version, Deadline until) {
    try {
      latest.move(registration, named, version, until.leftNs());
    } catch (UnsupportedException e) {
      unsupported = e;
      incomplete = List::of;
      throw e;
    }
    incomplete = List::of;
    if (version[0] == FINISHED && !isLed()) {
      link.setFinished();
    }
  }

  /**
   * Reports to the receivers that no version follows. Collective over the senders between two jobs,
   * otherwise over the whole link.
   */
  void finish(Deadline until) {
    if (link.isFinished()) {
      return;
    }
    if (isLed()) {
      Tickets.finish(this, until);
      link.setFinished();
    } else {
      transfer(FINISHED, new long[] {ANY}, until);
    }
  }

  /**
   * Returns the exception classes after which the link goes on: all ranks throw them, and no
   * receiver has the version. {@code UnsupportedException} is among them only if {@code failure}
   * occurred before any data moved.
   */
  private List<Class<? extends WindlassException>> shared(Throwable failure) {
    return failure == unsupported ? List.of(UnsupportedException.class) : SHARED;
  }

  /**
   * Moves and verifies a version. Peers may read this rank's sources until the verification is
   * over, so the sources stay pinned until then.
   *
   * @return the failure of the verification; null if it succeeded
   */
  private Checksums.@Nullable Failure moveAndVerify(
      int half, long named, long[] version, Deadline until) {
    TransferHandle sources = latest.handle();
    boolean held = sources.pin(); // once closed, the move says so
    boolean isOver = false;
    try {
      transfer(named, version, until);
      Checksums.Failure failure =
          version[0] == FINISHED ? null : checksums.get(half).verify(version[0], until);
      isOver = true;
      return failure;
    } catch (RuntimeException | Error e) {
      end(version[0], named, e, shared(e));
      throw e;
    } finally {
      if (held && isOver) {
        sources.unpin();
      } else if (held) {
        sources.unpinOnceQuiet();
      }
    }
  }

  /**
   * Ends the link after a failure of a move, unless the failure is of a class in {@code shared},
   * which all ranks throw.
   */
  void end(
      long version,
      long named,
      Throwable failure,
      List<Class<? extends WindlassException>> shared) {
    String what = operation(link.sends() ? "send" : "receive", version, named);
    Link.end(link.communicator(), what, failure, shared);
  }

  /**
   * Returns true if the senders wait in a send of this transfer. Only for receivers of a link
   * between two jobs. Thread-safe.
   */
  boolean isVersionOffered() {
    return handover().isWaiting(registration);
  }

  List<String> incomplete() {
    return incomplete.get();
  }

  /**
   * Returns the exception that call {@code what} throws for {@code failure}; see {@link
   * Link#failed}. A negative {@code version} means none.
   */
  RuntimeException failed(String what, long version, Throwable failure) {
    String operation = operation(what, version, ANY);
    return Link.failed(link.communicator(), operation, failure, shared(failure));
  }

  /**
   * Returns the text of call {@code what} for messages. The text contains {@code version}, or
   * {@code named} if {@code version} is negative.
   */
  private String operation(String what, long version, long named) {
    long of = version < 0 ? named : version;
    return link.operation(of < 0 ? what : what + " of version " + of);
  }

  /**
   * Returns the exception of call {@code what} if the other side did not arrive before the
   * deadline. The link stays usable.
   */
  WindlassException late(String what) {
    String operation = link.operation(what);
    return new DeadlineExceededException(
        operation + ": "
            + (link.sends()
                ? "the receivers have not asked for a version"
                : "the senders have had no version to send")
            + " when the deadline passed; nothing moved, and the link goes on",
        null,
        operation,
        List.of());
  }

  Progress progress() {
    return latest.progress();
  }

  void checkReplicas(Deadline until) {
    LinkSide senders = link.senders();
    try {
      senders.on(
          () -> {
            new Replicas(
                    until, senders.communicator(), link.ranks().senders(),
                    layout -> link.ranks().named(true, layout))
                .check(transfers.get(0).tensors());
            return null;
          });
    } catch (RuntimeException | Error e) {
      List<Class<? extends WindlassException>> shared = List.of(VerificationFailedException.class);
      // This failure is also the link's failure, so that the other ranks of the link get it too.
      Link.failed(link.communicator(), link.operation("checkReplicas"), e, shared);
      throw Link.failed(senders.communicator(), link.operation("checkReplicas"), e, shared);
    }
  }

  void close() {
    transfers.forEach(Transfer::close);
  }
}
