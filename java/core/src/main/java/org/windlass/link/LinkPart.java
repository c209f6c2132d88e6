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
import org.windlass.internal.transfer.Replicas;
import org.windlass.internal.transfer.TransferHandle;
import org.windlass.internal.transfer.Until;
import org.windlass.transfer.Progress;
import org.windlass.transfer.Transfer;

/**
 * The part of a {@link LinkTransfer} that moves over one link. One thread at a time, unless a
 * method says otherwise.
 */
final class LinkPart {
  private static final long ANY = Transfer.ANY_VERSION;
  private static final long FINISHED = Transfer.FINISHED;

  /** Failures of a move that all ranks have, and after which the link goes on. */
  private static final List<Class<? extends WindlassException>> SHARED =
      List.of(MismatchException.class, VerificationFailedException.class);

  private final Link link;
  private final int registration;

  /** Transfers, one for each half. Receivers with one half have the same memory in both. */
  private final List<Transfer> transfers;

  /** Checksums, one for each half, or none. */
  private final List<Checksums> checksums = new ArrayList<>();

  /** Names of this rank's targets that have parts of the version whose move failed last. */
  private Supplier<List<String>> incomplete = List::of;

  /** Exception that all ranks of the link threw before anything moved. Null for none. */
  private @Nullable UnsupportedException unsupported;

  /** Transfer that ran last. Thread-safe. */
  private volatile Transfer latest;

  LinkPart(Link link, List<Transfer> transfers, boolean checked) {
    this.link = link;
    this.registration = link.nextRegistration();
    this.transfers = List.copyOf(transfers);
    this.latest = transfers.get(0);
    if (checked) {
      transfers.forEach(
          transfer -> checksums.add(new Checksums(link.communicator(), transfer)));
    }
  }

  /**
   * Checks on all ranks that checksums can read the sources. Collective; see
   * {@link Checksums#checkSources}.
   */
  void checkSources(Until until) {
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

  /** Returns the transfer of a half. */
  Transfer transfer(int half) {
    return transfers.get(half);
  }

  /** Returns the number of moves that have begun; see {@link Transfer#begun}. Thread-safe. */
  long begun() {
    return transfers.stream().mapToLong(Transfer::begun).sum();
  }

  /** Returns true between two jobs, and false within one communicator. */
  boolean isLed() {
    return link.handover() != null;
  }

  /** Returns the handover between two jobs. */
  Handover handover() {
    return Objects.requireNonNull(link.handover());
  }

  long leftNs(Until until) {
    return until.leftNs(link.communicator());
  }

  /** Tells receivers the newest version, and if the senders wait with it. */
  void announce(long version, boolean isWaiting) {
    handover().announce(version, isWaiting ? registration : Handover.NONE);
  }

  /**
   * Moves a version into a half, and checks it. Collective over the link. Between two jobs, it
   * fails on all ranks of a job if it fails on one.
   *
   * @param named a version, {@link Transfer#ANY_VERSION}, or {@link Transfer#FINISHED}. Between two
   *     jobs, the latter takes the version back, so that it moves to no rank.
   * @param version receives the version that all ranks name, or {@link Transfer#FINISHED} if a rank
   *     names that, even if the call throws. It is unchanged if nothing has moved.
   */
  void move(int half, long named, long[] version, Until until) {
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

  private void moveHere(int half, long named, long[] version, Until until) {
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

  private void transfer(long named, long[] version, Until until) {
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
   * Ends the versions. Collective over the senders, or over the whole link within one communicator.
   */
  void finish(Until until) {
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
   * Returns the exception classes after which the link goes on, since all ranks throw them and
   * nothing was committed. {@code UnsupportedException} is one only before anything moved.
   */
  private List<Class<? extends WindlassException>> shared(Throwable failure) {
    return failure == unsupported ? List.of(UnsupportedException.class) : SHARED;
  }

  /**
   * Moves and verifies a version. Peers hash this rank's sources, which stay until the verification
   * is over.
   */
  private Checksums.@Nullable Failure moveAndVerify(
      int half, long named, long[] version, Until until) {
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

  /** Ends the link for a failure of a move, unless all ranks have it as one of {@code shared}. */
  void end(
      long version,
      long named,
      Throwable failure,
      List<Class<? extends WindlassException>> shared) {
    String what = operation(link.sends() ? "send" : "receive", version, named);
    Link.end(link.communicator(), what, failure, shared);
  }

  /** Returns true if the senders wait with a version. Between two jobs only. Thread-safe. */
  boolean isVersionOffered() {
    return handover().isWaiting(registration);
  }

  /**
   * Returns the names of this rank's targets that have parts of the version whose move failed last.
   */
  List<String> incomplete() {
    return incomplete.get();
  }

  /** Returns the exception of a call for {@code failure}; see {@link Link#failed}. */
  RuntimeException failed(String what, long version, Throwable failure) {
    String operation = operation(what, version, ANY);
    return Link.failed(link.communicator(), operation, failure, shared(failure));
  }

  /**
   * Returns the text of an operation on a version, or on the named one if ranks agreed on none.
   */
  private String operation(String what, long version, long named) {
    long of = version < 0 ? named : version;
    return link.operation(of < 0 ? what : what + " of version " + of);
  }

  /** Returns the exception of a call for which the other side did not arrive. The link goes on. */
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

  /** Returns the progress of the run in progress, or of the last one. Thread-safe. */
  Progress progress() {
    return latest.progress();
  }

  void checkReplicas(Until until) {
    LinkSide senders = Objects.requireNonNull(link.senders());
    try {
      senders.on(
          () -> {
            Replicas.check(
                until,
                senders.communicator(),
                link.ranks().senders(),
                layout -> link.ranks().named(true, layout),
                transfers.get(0).tensors());
            return null;
          });
    } catch (RuntimeException | Error e) {
      List<Class<? extends WindlassException>> shared = List.of(VerificationFailedException.class);
      // This is the link's failure too. The other ranks of the link see it there.
      Link.failed(link.communicator(), link.operation("checkReplicas"), e, shared);
      throw Link.failed(senders.communicator(), link.operation("checkReplicas"), e, shared);
    }
  }

  void close() {
    transfers.forEach(Transfer::close);
  }
}
