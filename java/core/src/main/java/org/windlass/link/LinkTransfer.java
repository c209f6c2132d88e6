// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.windlass.Operation;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.transfer.Targets;
import org.windlass.transfer.Progress;
import org.windlass.transfer.Transfer;

/**
 * Tensors that both sides of a {@link Link} have registered, and that move together, version by
 * version. Made by {@link LinkTransferBuilder#register}.
 *
 * <p>Every sender calls {@link #send} or {@link #trySend}, and every receiver {@link #receive} or
 * {@link #tryReceive}. A rank that is on both sides only sends. Nothing moves unless all ranks name
 * the same version. A receiver commits a version, that is, returns it from {@link #tensor(String)},
 * once all targets of all ranks are complete. If {@link LinkTransferBuilder#checksums} asks for it,
 * they are also verified. {@link #finish()} ends the versions.
 *
 * <p><b>Call {@link #tensor(String)} after each receive.</b> It returns the version that was
 * received last, whole:
 *
 * <ul>
 *   <li>By default, a receiver has two halves of memory: the view that was passed to {@code into},
 *       and one that the transfer allocates. Versions arrive in them by turns, so the view that was
 *       passed to {@code into} holds only every second version. Tensors that {@code tensor}
 *       returned keep their content until the receive after the next one.
 *   <li>{@link LinkTransferBuilder#inPlace In place}, every version arrives in the view that was
 *       passed to {@code into}. Nothing can be read while a version arrives.
 * </ul>
 *
 * <p><b>Failures.</b> An exception means that the link is over, or that the call was wrong. The
 * methods list the exceptions after which the link goes on. A receiver with two halves keeps the
 * last version that it committed. In place, {@link #version} is empty if anything had moved, and
 * {@link #incomplete} names the tensors that hold parts of two versions. Received tensors stay
 * readable after {@link #close} and {@link Link#close}. If a call fails on one rank only, such as
 * for a closed view, its peers get an {@link AbortedException} that names the rank.
 *
 * <p><b>Between two jobs:</b>
 *
 * <ul>
 *   <li>All ranks of a job make each call within its deadline and 2 s of one another. If one calls
 *       later, the link ends. The shortest deadline counts for all of them.
 *   <li>If the other job does not call before the deadline, nothing is lost, and the link goes on.
 *       A version for which no receiver asked in time is skipped. The next receive gets the version
 *       that the senders offer then.
 *   <li>A version succeeds or fails on all ranks of a job alike, unless a rank of that job is lost.
 *       So do {@link #trySend} and {@link #tryReceive} that return without a version.
 *   <li>A version moves over all links or over none. If a move fails over one link after it has
 *       succeeded over others, that link ends, whatever the exception.
 *   <li>A send keeps a part of its deadline for the move: one second or twice the last move, and at
 *       most half of the deadline. A receive that was offered a version lasts as long as the send,
 *       and at most 2 s longer. Once both sides have arrived, a move has at least one second over
 *       each link.
 * </ul>
 *
 * <p><b>Within one communicator</b> all ranks take part in each version, as in a collective. A
 * deadline that passes ends the link. A rank that had committed before a failure reached it keeps
 * the new version, and others the previous one. No rank commits before all are complete.
 *
 * <p>The ranks of a link make their calls in one order, each on one thread at a time. If one rank
 * registers while others send, all get a {@link MismatchException}. Queries are thread-safe.
 */
public final class LinkTransfer implements AutoCloseable {
  private static final long ANY = Transfer.ANY_VERSION;
  private static final long FINISHED = Transfer.FINISHED;

  private final LinkParts parts;
  private final List<Link> links;

  private final Link link;
  private final Targets targets;

  /** Index of the memory half for the next version. Only the thread of the current call uses it. */
  private int next;

  private volatile Holding holding = Holding.NOTHING;

  /** Number of moves before the current call, if that receives in place; otherwise negative. */
  private volatile long begun = Holding.NONE;

  LinkTransfer(List<LinkPart> parts, int rounds, Targets targets) {
    this.parts = new LinkParts(parts, rounds);
    this.links = this.parts.all().stream().map(LinkPart::link).toList();
    this.link = links.get(0);
    this.targets = targets;
  }

  /**
   * Sends this rank's tensors. When it returns, every target has them, and the sources may change.
   * This includes the targets of a rank on both sides.
   *
   * @param version 0 or more; the same on every sender. Versions need no order, and may repeat.
   * @throws MismatchException on every rank, if ranks name other versions; nothing has moved, and
   *     the link goes on
   * @throws UnsupportedException on every rank, if memory outside windows can't be read as {@code
   *     WINDLASS_PEER_MEMORY} asks; nothing has moved, and the link goes on
   * @throws VerificationFailedException on every rank, if received data differs from sent data;
   *     nothing is committed, and the link goes on
   */
  public void send(long version) {
    send(version, Deadline.DEFAULT);
  }

  /**
   * Sends as {@link #send(long)} does, with the given deadline.
   *
   * @throws org.windlass.error.DeadlineExceededException between two jobs, if the receivers have
   *     not asked for a version before the deadline; the link goes on
   */
  public void send(long version, Duration deadline) {
    send(version, Deadline.nanos(deadline));
  }

  private void send(long version, long deadlineNs) {
    requireSent(version);
    move("send", version, deadlineNs).orThrow();
  }

  /**
   * Sends as {@link #send(long, Duration)} does, but returns false if that throws for its deadline.
   *
   * @return true if all receivers have the version. False if they have not asked for a version
   *     before the deadline. Then no receiver has it, and the link goes on. The next call may offer
   *     the same version or another one. All senders get the same result. Within one communicator,
   *     it returns true or throws.
   * @throws WindlassException if the link is over, or in the cases of {@link #send(long)}
   */
  public boolean trySend(long version, Duration deadline) {
    requireSent(version);
    return move("send", version, Deadline.nanos(deadline)).late == null;
  }

  private void requireSent(long version) {
    requireSender("send");
    requireVersion("send", version);
    if (isFinished()) {
      throw new InvalidArgumentException("send: " + link + " was finished");
    }
  }

  /** Calls {@link #finish(Duration)} with the communicator's deadline. */
  public void finish() {
    finish(Deadline.DEFAULT);
  }

  /**
   * Ends the versions. Collective over the senders. Nothing more can be sent over the links of this
   * transfer. Receivers that wait now or begin later end without a version, and {@link #isFinished}
   * returns true. They keep the version that they hold. Idempotent.
   *
   * <p>Between two jobs, it does not wait until receivers ask, and the senders may leave when it
   * returns. It also succeeds if the receivers have left. Within one communicator, receivers must
   * call a receive at the same time, as for a version.
   *
   * @param deadline limit of the call; if it passes, the link is over
   */
  public void finish(Duration deadline) {
    finish(Deadline.nanos(deadline));
  }

  private void finish(long deadlineNs) {
    requireSender("finish");
    Link.enter("finish", links);
    RuntimeException first = null;
    try {
      Deadline until = Deadline.of(deadlineNs);
      for (LinkPart part : parts.all()) {
        try {
          part.finish(until);
        } catch (RuntimeException | Error e) {
          RuntimeException failure = part.failed("finish", ANY, e);
          first = first == null ? failure : first;
        }
      }
    } finally {
      Link.leave(links);
    }
    if (first != null) {
      throw first; // the receivers of the other links have the end
    }
  }

  /**
   * Receives the version that the senders send next, and commits it. Then read it by {@link
   * #tensor(String)}.
   *
   * @return the number of that version
   * @throws AbortedException if the senders have finished, before or during the call; {@link
   *     #isFinished} returns true then. {@link #tryReceive} returns empty instead.
   * @throws MismatchException as {@link #send(long)} does
   * @throws UnsupportedException as {@link #send(long)} does
   * @throws VerificationFailedException as {@link #send(long)} does
   */
  public long receive() {
    return receive(ANY, Deadline.DEFAULT);
  }

  /**
   * Receives as {@link #receive()} does, with the given deadline.
   *
   * @throws org.windlass.error.DeadlineExceededException between two jobs, if the senders had no
   *     version before the deadline; the link goes on
   * @throws AbortedException if the senders have finished, as {@link #receive()} does
   */
  public long receive(Duration deadline) {
    return receive(ANY, Deadline.nanos(deadline));
  }

  /**
   * Receives {@code version} as {@link #receive()} does.
   *
   * @throws MismatchException if the senders send another version; nothing has moved
   * @throws AbortedException if the senders have finished, as {@link #receive()} does
   */
  public void receive(long version) {
    requireVersion("receive", version);
    receive(version, Deadline.DEFAULT);
  }

  /**
   * Receives as {@link #receive(long)} does, with the given deadline.
   *
   * @throws AbortedException if the senders have finished, as {@link #receive()} does
   */
  public void receive(long version, Duration deadline) {
    requireVersion("receive", version);
    receive(version, Deadline.nanos(deadline));
  }

  private long receive(long version, long deadlineNs) {
    requireReceived();
    return move("receive", version, deadlineNs).orThrow();
  }

  /**
   * Receives as {@link #receive(Duration)} does, but returns empty if no version arrives.
   *
   * <pre>{@code
   * while (!weights.isFinished()) {
   *   weights.tryReceive(ofSeconds(30)).ifPresent(v -> engine.swap(weights.tensor("w"), v));
   * }
   * }</pre>
   *
   * <p>Between two jobs, all receivers call it within {@code deadline} and 2 s of one another.
   * Otherwise the link ends. Within one communicator, it throws if the deadline passes, and the
   * link ends.
   *
   * @param deadline more than zero. The senders answer within it, so 10 ms is a good choice for a
   *     poll. {@link #isVersionOffered} looks without a call to the senders.
   * @return the version; empty if the senders had none before the deadline, or have finished (see
   *     {@link #isFinished}). All receivers get the same result.
   * @throws WindlassException if the link is over, or in the other cases of {@link #receive()}
   */
  public OptionalLong tryReceive(Duration deadline) {
    long deadlineNs = Deadline.nanos(deadline);
    requireReceived();
    Outcome outcome = move("receive", ANY, deadlineNs);
    return outcome.late == null ? OptionalLong.of(outcome.version) : OptionalLong.empty();
  }

  /**
   * Returns true if the senders have finished ({@link #finish()}), so that no version follows. On a
   * receiver, it changes only during a receive, and then on all receivers. So it stays false in a
   * loop that calls no receive. Thread-safe.
   */
  public boolean isFinished() {
    return parts.isFinished();
  }

  private void requireReceived() {
    requireReceiver("receive");
    if (link.sends()) {
      throw new InvalidArgumentException(
          "receive: this rank is also a sender of " + link + "; it receives in its send");
    }
  }

  private static void requireVersion(String what, long version) {
    if (version < 0) {
      throw new InvalidArgumentException(
          what + ": version is " + version + "; it must be 0 or more");
    }
  }

  /** Result of a move: the version, or in {@code late} the reason why no version arrived. */
  private record Outcome(long version, @Nullable WindlassException late) {
    long orThrow() {
      if (late != null) {
        throw late;
      }
      return version;
    }
  }

  private Outcome move(String what, long wanted, long deadlineNs) {
    Link.enter(what, links);
    long[] version = {ANY};
    try {
      Deadline until = Deadline.of(deadlineNs);
      while (!isFinished()) {
        begun = targets.isInPlace() ? parts.begun() : Holding.NONE;
        LinkPart late = parts.move(next, wanted, version, until);
        if (late != null) {
          return new Outcome(ANY, late.late(what));
        }
        if (version[0] != ANY) {
          holding = Holding.of(version[0], next);
          next = (next + 1) % parts.all().get(0).halves();
          return new Outcome(version[0], null);
        }
      }
      return new Outcome(FINISHED, finished(what));
    } catch (RuntimeException | Error e) {
      keep(version[0], parts.failed(), e);
      throw parts.failed().failed(what, version[0] < 0 ? wanted : version[0], e);
    } finally {
      begun = Holding.NONE;
      Link.leave(links);
    }
  }

  private void keep(long version, LinkPart at, Throwable failure) {
    if (targets.isInPlace() && version >= 0) {
      holding = Holding.overwritten(version).incomplete(at.incomplete(), failure);
    }
  }

  private WindlassException finished(String what) {
    String operation = link.operation(what);
    return new AbortedException(
        operation + ": the senders have finished; no version follows", null, operation, List.of());
  }

  private Holding held() {
    long before = begun;
    boolean isOverwritten = before >= 0 && parts.begun() != before;
    return isOverwritten ? Holding.overwritten(Holding.NEXT) : holding;
  }

  /**
   * Starts {@link #send(long, Duration)} on the link's own thread, and returns. The send runs after
   * asynchronous calls that were started before.
   */
  public Operation<Void> sendAsync(long version, Duration deadline) {
    long deadlineNs = Deadline.nanos(deadline);
    return link.communicator().runAsync(queued -> send(version, deadlineNs));
  }

  /**
   * Starts {@link #receive(Duration)} on the link's own thread, and returns. It runs after
   * asynchronous calls that were started before. The result is the version.
   */
  public Operation<Long> receiveAsync(Duration deadline) {
    long deadlineNs = Deadline.nanos(deadline);
    return link.communicator().supplyAsync(queued -> receive(ANY, deadlineNs));
  }

  /**
   * Returns the newest version that the senders have offered on the link, received or not; empty
   * before the first one. Thread-safe.
   *
   * @throws InvalidArgumentException if the link is within one communicator, or this is a sender
   */
  public OptionalLong newest() {
    return requireHandover("newest").newest();
  }

  /**
   * Returns true if the senders of all links wait in a send of this transfer now, so that a {@link
   * #receive} on all receivers would get its version. It says nothing about the end: see {@link
   * #isFinished}. Receivers may see different answers at one time. Thread-safe.
   *
   * @throws InvalidArgumentException if the link is within one communicator, or this is a sender
   */
  public boolean isVersionOffered() {
    requireHandover("isVersionOffered");
    return parts.isVersionOffered();
  }

  private Handover requireHandover(String what) {
    requireReceiver(what);
    Handover handover = link.handover();
    if (handover == null) {
      throw new InvalidArgumentException(
          what + ": " + link + " is within one communicator, whose ranks take part in each send");
    }
    return handover;
  }

  /** Returns the version that this receiver committed last; empty if none is complete. */
  public OptionalLong version() {
    requireReceiver("version");
    long version = held().version();
    return version == Holding.NONE ? OptionalLong.empty() : OptionalLong.of(version);
  }

  /**
   * Returns this receiver's part of a tensor, in the version that {@link #version} returns.
   *
   * @throws InvalidArgumentException if there is no version, or {@code name} has no view or several
   * @throws AbortedException if a version failed to arrive in place
   */
  public Tensor tensor(String name) {
    Objects.requireNonNull(name, "name");
    requireReceiver("tensor");
    targets.requireOne(name);
    return targets.view(name, held().readable("tensor '" + name + "'"));
  }

  /**
   * Returns this receiver's part of a tensor, in the version that {@link #version} returns.
   *
   * @param bound a view that was passed to {@code into}, or another view of the same memory between
   *     such views, such as the fused tensor from which they were narrowed
   * @throws InvalidArgumentException if there is no version, or {@code bound} is in other memory
   * @throws AbortedException if a version failed to arrive in place
   */
  public Tensor tensor(Tensor bound) {
    requireReceiver("tensor");
    Objects.requireNonNull(bound, "bound");
    return targets.view(bound, held().readable("tensor " + bound));
  }

  /**
   * Returns the names of this receiver's tensors that may hold parts of two versions, after a
   * version failed to arrive in place. Empty without {@link LinkTransferBuilder#inPlace}.
   */
  public List<String> incomplete() {
    requireReceiver("incomplete");
    return holding.incomplete();
  }

  private void requireSender(String what) {
    if (!link.sends()) {
      throw new InvalidArgumentException(what + ": this rank is not a sender of " + link);
    }
  }

  private void requireReceiver(String what) {
    if (!link.receives()) {
      throw new InvalidArgumentException(what + ": this rank is not a receiver of " + link);
    }
  }

  /** Returns how much of the version in progress, or of the last one, has moved. Thread-safe. */
  public Progress progress() {
    return parts.all().stream().map(LinkPart::progress).reduce(Progress::plus).orElseThrow();
  }

  /**
   * Checks that senders with the same part of a tensor hold the same bits, as {@link
   * Transfer#checkReplicas} does. Collective over the senders.
   *
   * @throws VerificationFailedException on every sender, if two replicas differ
   */
  public void checkReplicas() {
    requireSender("checkReplicas");
    Link.enter("checkReplicas", links);
    try {
      Deadline until = Deadline.of(Deadline.DEFAULT);
      parts.all().forEach(part -> part.checkReplicas(until));
    } finally {
      Link.leave(links);
    }
  }

  /**
   * Releases sources and targets, once a call in progress is over. Closing the link does this too.
   * Idempotent.
   */
  @Override
  public void close() {
    parts.all().forEach(LinkPart::close);
    links.forEach(each -> each.letGo(this));
  }

  @Override
  public String toString() {
    int tensors =
        parts.all().stream().mapToInt(part -> part.transfer(0).tensors().size()).sum();
    return "LinkTransfer of " + tensors + " tensors, "
        + links.stream().map(Link::toString).collect(Collectors.joining(", "));
  }
}
