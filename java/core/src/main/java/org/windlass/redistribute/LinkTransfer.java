// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import org.windlass.AbortedException;
import org.windlass.Communicator;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadlines;

/**
 * A transfer of a {@link LinkBatch} that both sides have registered. Each version moves once: every
 * sender calls {@link #send}, every receiver {@link #receive}, and a rank that is both calls send
 * alone. All tensors of a version move as one: ranks name it as they come, and nothing moves unless
 * they agree; its bytes move; each receiver commits it once every target on every rank is
 * complete, and checked where {@link LinkBatch#checksums} asks for it.
 *
 * <p>What a receiver reads through {@link #tensor} is always one version, whole:
 *
 * <ul>
 *   <li>By default it has two halves. The version before stays readable, and as it is, while the
 *       next one is written to the other half; the commit flips between them. What {@code tensor}
 *       gave stays as it is until the receive after the next.
 *   <li>{@link LinkBatch#inPlace In place} there is nothing to read while a version arrives.
 * </ul>
 *
 * <p>After a failure, a receiver with two halves holds the last version that it committed; in place
 * {@link #version} is empty unless nothing had been moved, and {@link #torn} names the tensors that
 * hold parts of two versions. A rank that had committed before a failure reached it stays with the
 * new version, while others keep the one before; no rank commits before all are complete. What was
 * received stays readable when the link, or this object, is closed.
 *
 * <p>The ranks of a link make their calls in one order: one that registers while others send is a
 * {@link MismatchException} on all, and the link is dead. So it is after a call that fails on one
 * rank alone, such as for a view that was closed: its peers get an {@link AbortedException} that
 * names the rank. A call that is refused before it sends anything ({@link
 * InvalidArgumentException}) changes nothing.
 *
 * <p>One thread at a time calls an operation; queries may come from any thread at any time.
 */
public final class LinkTransfer implements AutoCloseable {
  private static final long ANY = Transfer.ANY_VERSION;

  private final Link link;
  private final Communicator communicator;
  private final int registration;
  private final Targets targets;

  /** One for each half: receivers with one half have the same memory in both. */
  private final List<Transfer> transfers;

  /** As many; or none. */
  private final List<Checksums> checksums = new ArrayList<>();

  /** Into which the next version goes; the caller's alone. */
  private int next;

  /** Which ran last. */
  private volatile Transfer latest;

  private volatile Holding holding = Holding.NOTHING;

  /** In place, the call in progress; null without one. */
  private volatile Overwriting overwriting;

  LinkTransfer(Link link, List<Transfer> transfers, Targets targets, boolean checked) {
    this.link = link;
    this.communicator = link.communicator();
    this.registration = link.nextRegistration();
    this.transfers = List.copyOf(transfers);
    this.targets = targets;
    this.latest = transfers.get(0);
    if (checked) {
      transfers.forEach(transfer -> checksums.add(new Checksums(communicator, transfer)));
    }
  }

  /**
   * Sends this rank's tensors. Sources may be changed when it returns; every target has them then.
   * On a rank that is a receiver too, its own targets have them.
   *
   * @param version 0 or more; the same on every sender
   * @throws MismatchException on every rank, if ranks name other versions; nothing has moved, and
   *     the link goes on
   * @throws VerificationFailedException on every rank, if what arrived is not what was sent;
   *     nothing is committed, and the link goes on
   */
  public void send(long version) {
    send(version, Deadlines.DEFAULT);
  }

  /** {@link #send(long)} with a deadline of its own. */
  public void send(long version, Duration deadline) {
    send(version, Deadlines.nanos(deadline, WindlassException::of));
  }

  private void send(long version, long deadlineNs) {
    if (!link.sends()) {
      throw new InvalidArgumentException("send: this rank is no sender of " + link);
    }
    requireVersion("send", version);
    move("send", version, deadlineNs);
  }

  /**
   * Receives the version that the senders send next, and commits it.
   *
   * @return that version
   * @throws MismatchException as {@link #send(long)} does
   * @throws VerificationFailedException as {@link #send(long)} does
   */
  public long receive() {
    return receive(ANY, Deadlines.DEFAULT);
  }

  /** {@link #receive()} with a deadline of its own. */
  public long receive(Duration deadline) {
    return receive(ANY, Deadlines.nanos(deadline, WindlassException::of));
  }

  /** {@link #receive()} of one version: if the senders send another, none is received. */
  public void receive(long version) {
    requireVersion("receive", version);
    receive(version, Deadlines.DEFAULT);
  }

  /** {@link #receive(long)} with a deadline of its own. */
  public void receive(long version, Duration deadline) {
    requireVersion("receive", version);
    receive(version, Deadlines.nanos(deadline, WindlassException::of));
  }

  private long receive(long version, long deadlineNs) {
    requireReceiver("receive");
    if (link.sends()) {
      throw new InvalidArgumentException(
          "receive: this rank is a sender too, of " + link + "; it receives in its send");
    }
    return move("receive", version, deadlineNs);
  }

  private static void requireVersion(String what, long version) {
    if (version < 0) {
      throw new InvalidArgumentException(
          what + ": version is " + version + "; it must be 0 or more");
    }
  }

  private long move(String what, long wanted, long deadlineNs) {
    link.enter(what);
    long[] version = {ANY};
    try {
      Until until = new Until(deadlineNs);
      Transfer transfer = transfers.get(next);
      latest = transfer;
      overwriting = targets.isInPlace() ? new Overwriting(transfer, transfer.begun()) : null;
      try {
        transfer.move(registration, wanted, version, until.leftNs());
      } catch (RuntimeException | Error e) {
        if (targets.isInPlace() && version[0] != ANY) {
          holding = Holding.overwritten(version[0]);
          tear(e, transfer.incomplete());
        }
        throw e;
      }
      if (targets.isInPlace()) {
        holding = Holding.overwritten(version[0]);
      }
      verify(version[0], until);
      holding = Holding.of(version[0], next);
      next = (next + 1) % transfers.size();
      return version[0];
    } catch (RuntimeException | Error e) {
      long known = version[0] == ANY ? wanted : version[0];
      throw Link.failed(
          communicator,
          link.operation(known == ANY ? what : what + " of version " + known),
          e,
          List.of(MismatchException.class, VerificationFailedException.class));
    } finally {
      overwriting = null;
      link.leave();
    }
  }

  /**
   * A call that writes over the version that is held, once all ranks have come: when {@code
   * transfer} has begun more moves than {@code before}.
   */
  private record Overwriting(Transfer transfer, long before) {}

  /** What the targets hold now, from any thread. */
  private Holding held() {
    Overwriting call = overwriting;
    return call != null && call.transfer.begun() > call.before
        ? Holding.overwritten(Holding.NEXT)
        : holding;
  }

  private void verify(long version, Until until) {
    if (checksums.isEmpty()) {
      return;
    }
    Checksums.Failure failure;
    try {
      failure = checksums.get(next).verify(version, until);
    } catch (RuntimeException | Error e) {
      tear(e, List.of());
      throw e;
    }
    if (failure != null) {
      tear(failure.exception(), failure.wrong());
      throw failure.exception();
    }
  }

  /** Remembers, where targets are written in place, that what was arriving has not arrived. */
  private void tear(Throwable cause, List<String> torn) {
    if (targets.isInPlace()) {
      holding = holding.torn(torn, cause);
    }
  }

  /** The version that this receiver holds whole; empty before the first one. */
  public OptionalLong version() {
    requireReceiver("version");
    long version = held().version();
    return version == Holding.NONE ? OptionalLong.empty() : OptionalLong.of(version);
  }

  /**
   * This receiver's part of a tensor, in the version that it holds.
   *
   * @throws InvalidArgumentException if there is none, or the name is not that of one view
   * @throws AbortedException if a version failed to arrive in place
   */
  public Tensor tensor(String name) {
    Objects.requireNonNull(name, "name");
    requireReceiver("tensor");
    return targets.view(name, held().readable("tensor '" + name + "'"));
  }

  /**
   * What the version that this receiver holds has where {@code bound} lies: a view that was bound,
   * or another of the same memory between the first and the last of those, such as the fused tensor
   * that they were narrowed from.
   *
   * @throws InvalidArgumentException if there is none, or {@code bound} lies elsewhere
   * @throws AbortedException if a version failed to arrive in place
   */
  public Tensor tensor(Tensor bound) {
    requireReceiver("tensor");
    Objects.requireNonNull(bound, "bound");
    return targets.view(bound, held().readable("tensor " + bound));
  }

  /**
   * Names of this receiver's tensors of which a version that failed to arrive in place has, or may
   * have, written a part. Those that it had written wholly are not among them. Empty with two
   * halves.
   */
  public List<String> torn() {
    requireReceiver("torn");
    return holding.torn();
  }

  private void requireReceiver(String what) {
    if (!link.receives()) {
      throw new InvalidArgumentException(what + ": this rank is no receiver of " + link);
    }
  }

  /** How far the version in progress has come, or the last one came; from any thread. */
  public Progress progress() {
    return latest.progress();
  }

  /**
   * Collective over the senders: {@link Transfer#checkReplicas} of what they send.
   *
   * @throws VerificationFailedException on every sender, as there
   */
  public void checkReplicas() {
    if (!link.sends()) {
      throw new InvalidArgumentException("checkReplicas: this rank is no sender of " + link);
    }
    link.enter("checkReplicas");
    try {
      Until until = new Until(Deadlines.DEFAULT);
      Replicas.check(until, link.senders(), link.senderRanks(), transfers.get(0).tensors());
    } catch (RuntimeException | Error e) {
      List<Class<? extends WindlassException>> shared = List.of(VerificationFailedException.class);
      // The link's failure too, which the other ranks of the link look at.
      Link.failed(communicator, link.operation("checkReplicas"), e, shared);
      throw Link.failed(link.senders(), link.operation("checkReplicas"), e, shared);
    } finally {
      link.leave();
    }
  }

  /** Lets go of sources and targets, once a call in progress is over. Idempotent. */
  @Override
  public void close() {
    transfers.forEach(Transfer::close);
  }

  @Override
  public String toString() {
    return "LinkTransfer of " + transfers.get(0).tensors().size() + " tensors, " + link;
  }
}
