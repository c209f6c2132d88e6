// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.windlass.Operation;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.transfer.Targets;
import org.windlass.internal.transfer.Until;
import org.windlass.transfer.Progress;
import org.windlass.transfer.Transfer;

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
 * <p><b>Of two jobs</b>, a side that waits in vain has lost nothing: {@link #send} and {@link
 * #receive} throw {@link DeadlineExceededException}, and the link goes on. So a version that no
 * receive asked for in time is skipped, and the next receive gets the newest. Of its deadline, send
 * keeps up to half, and a second or twice the last move, for the move itself; a receive that has
 * been offered a version lasts as long as the send, 2 s more at most. Once both sides have come,
 * either has a second at least for the move; and of a batch over several links for each link after
 * the first, over which a version has moved by then. A receiver commits once all
 * ranks of its job have the version: after a failure they all have the new one, or all the one
 * before, unless one of themselves is lost.
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

  /** In the order of their links' names: so the ranks of all links come to each in one order. */
  private final List<LinkPart> parts;

  private final List<Link> links;

  /** The first of them. */
  private final Link link;

  private final Targets targets;

  /** Into which the next version goes; the caller's alone. */
  private int next;

  private volatile Holding holding = Holding.NOTHING;

  /** In place, the call in progress; null without one. */
  private volatile Overwriting overwriting;

  LinkTransfer(List<LinkPart> parts, Targets targets) {
    this.parts = List.copyOf(parts);
    this.links = parts.stream().map(LinkPart::link).toList();
    this.link = links.get(0);
    this.targets = targets;
  }

  /**
   * Sends this rank's tensors. Sources may be changed when it returns; every target has them then.
   * On a rank that is a receiver too, its own targets have them.
   *
   * @param version 0 or more; the same on every sender
   * @throws MismatchException on every rank, if ranks name other versions; nothing has moved, and
   *     the link goes on
   * @throws UnsupportedException on every rank, if memory outside windows can't be read as {@code
   *     WINDLASS_PEER_MEMORY} asks; nothing has moved, and the link goes on
   * @throws VerificationFailedException on every rank, if what arrived is not what was sent;
   *     nothing is committed, and the link goes on
   */
  public void send(long version) {
    send(version, Deadline.DEFAULT);
  }

  /** {@link #send(long)} with a deadline of its own. */
  public void send(long version, Duration deadline) {
    send(version, Deadline.nanos(deadline));
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
   * @throws UnsupportedException as {@link #send(long)} does
   * @throws VerificationFailedException as {@link #send(long)} does
   */
  public long receive() {
    return receive(ANY, Deadline.DEFAULT);
  }

  /**
   * {@link #receive()} with a deadline of its own. Between two jobs the link goes on where it passes
   * and the senders have had no version; the ranks of one job wait 2 s longer for one another, and
   * one that does not come by then ends the link.
   */
  public long receive(Duration deadline) {
    return receive(ANY, Deadline.nanos(deadline));
  }

  /** {@link #receive()} of one version: if the senders send another, none is received. */
  public void receive(long version) {
    requireVersion("receive", version);
    receive(version, Deadline.DEFAULT);
  }

  /** {@link #receive(long)} with a deadline of its own. */
  public void receive(long version, Duration deadline) {
    requireVersion("receive", version);
    receive(version, Deadline.nanos(deadline));
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
    Link.enter(what, links);
    long[] version = {ANY};
    LinkPart at = parts.get(0);
    boolean isLate = false;
    try {
      Until until = new Until(deadlineNs);
      overwriting = targets.isInPlace() ? Overwriting.of(parts, next) : null;
      for (LinkPart part : parts) {
        at = part;
        long named = version[0] == ANY ? wanted : version[0];
        Until coming = part == parts.get(0) ? until : until.orLonger(Handover.RESERVE);
        Until moving = part.come(link.sends(), named, coming);
        if (moving == null) {
          isLate = true;
          throw late(what, part.link(), parts.subList(0, parts.indexOf(part)), version[0]);
        }
        part.move(next, named, version, moving);
      }
      holding = Holding.of(version[0], next);
      next = (next + 1) % parts.get(0).halves();
      return version[0];
    } catch (RuntimeException | Error e) {
      if (targets.isInPlace() && version[0] != ANY) {
        holding = Holding.overwritten(version[0]).torn(at.torn(), e);
      }
      if (isLate) {
        throw e;
      }
      throw at.failed(what, version[0] == ANY ? wanted : version[0], e);
    } finally {
      overwriting = null;
      Link.leave(links);
    }
  }

  /**
   * What is thrown where the other side of a link has not come; the links go on.
   *
   * @param before the parts that have moved {@code version} by then
   */
  private static WindlassException late(
      String what, Link link, List<LinkPart> before, long version) {
    String moved =
        before.stream()
            .map(part -> "'" + part.link().name() + "'")
            .collect(Collectors.joining(", "));
    String operation = link.operation(what);
    return new DeadlineExceededException(
        operation + ": "
            + (link.sends()
                ? "the receivers have not asked for a version"
                : "the senders have had no version to send")
            + (before.isEmpty()
                ? " when the deadline passed; nothing moved, and the link goes on"
                : " when the deadline passed; version " + version + " had moved over " + moved
                    + " by then, and who receives over this link too has not taken it; the links"
                    + " go on"),
        null,
        operation,
        List.of());
  }

  /**
   * A call that writes over the version that is held, once all ranks have come: when a transfer has
   * begun more moves than before.
   */
  private record Overwriting(List<Transfer> transfers, long[] before) {
    static Overwriting of(List<LinkPart> parts, int half) {
      List<Transfer> transfers = parts.stream().map(part -> part.transfer(half)).toList();
      return new Overwriting(transfers, begun(transfers));
    }

    private static long[] begun(List<Transfer> transfers) {
      return transfers.stream().mapToLong(Transfer::begun).toArray();
    }

    boolean hasBegun() {
      return !Arrays.equals(begun(transfers), before);
    }
  }

  /** What the targets hold now, from any thread. */
  private Holding held() {
    Overwriting call = overwriting;
    return call != null && call.hasBegun() ? Holding.overwritten(Holding.NEXT) : holding;
  }

  /**
   * {@link #send(long, Duration)} on a thread of the link's own, behind what was queued there
   * before.
   */
  public Operation<Void> sendAsync(long version, Duration deadline) {
    long deadlineNs = Deadline.nanos(deadline);
    return link.communicator().async(queued -> send(version, deadlineNs));
  }

  /** {@link #receive(Duration)} likewise. */
  public Operation<Long> receiveAsync(Duration deadline) {
    long deadlineNs = Deadline.nanos(deadline);
    return link.communicator().asyncCall(queued -> receive(ANY, deadlineNs));
  }

  /**
   * Of a link of two jobs, on a receiver: the newest version that the senders have come to send so
   * far on the link, of whichever batch, received or not; empty before the first.
   */
  public OptionalLong newest() {
    requireHandover("newest");
    return link.handover().newest();
  }

  /**
   * Of a link of two jobs, on a receiver: whether the senders wait with a version now, which {@link
   * #receive} would get.
   */
  public boolean isThere() {
    requireHandover("isThere");
    return parts.get(0).isThere();
  }

  private void requireHandover(String what) {
    requireReceiver(what);
    if (link.handover() == null) {
      throw new InvalidArgumentException(
          what + ": " + link + " is within one communicator, whose ranks come to each send");
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
    targets.requireOne(name);
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
    return parts.stream().map(LinkPart::progress).reduce(Progress::plus).orElseThrow();
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
    Link.enter("checkReplicas", links);
    try {
      Until until = new Until(Deadline.DEFAULT);
      parts.forEach(part -> part.checkReplicas(until));
    } finally {
      Link.leave(links);
    }
  }

  /**
   * Lets go of sources and targets, once a call in progress is over. A link that is closed does
   * this too. Idempotent.
   */
  @Override
  public void close() {
    parts.forEach(LinkPart::close);
    links.forEach(each -> each.letGo(this));
  }

  @Override
  public String toString() {
    return "LinkTransfer of "
        + parts.stream().mapToInt(part -> part.transfer(0).tensors().size()).sum() + " tensors, "
        + links.stream().map(Link::toString).collect(Collectors.joining(", "));
  }
}
