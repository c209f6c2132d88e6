// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Failures;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Native;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.transfer.Alike;
import org.windlass.internal.transfer.Names;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;

/**
 * A link between two sides of a communicator, senders and receivers. Tensors move from senders to
 * receivers, version after version. Each side knows only its own layouts: senders add the
 * tensors to send, and receivers the tensors to receive. {@link LinkTransferBuilder#register} makes
 * one plan from both.
 *
 * <pre>{@code
 * Link link = Link.open(comm, "policy", senders, receivers);
 *
 * var transfer = link.transferBuilder().defaultWire(BF16) // on a sender
 *     .add("l0.q_proj", shape, q, senders.layout(partial(SUM), shard(0)))
 *     .register(ofMinutes(1));
 * for (long v = 1; v <= steps; v++) {
 *   train();
 *   transfer.send(v);
 * }
 *
 * var transfer = link.transferBuilder()                   // on a receiver
 *     .into("l0.q_proj", shape, q, receivers.layout(shard(0)))
 *     .register(ofMinutes(1));
 * for (long v = 1; v <= steps; v++) {
 *   transfer.receive();
 *   serve(transfer.tensor("l0.q_proj")); // not q: it holds only every second version
 * }
 * }</pre>
 *
 * <p>{@link org.windlass.job.Job#connect} makes a link between two jobs, each with a communicator
 * of its own. Only over such a link, a receiver can poll for versions. A layout then uses the rank
 * numbers of its own job.
 *
 * <p>A link has a communicator of its own. If the link fails, each side continues with its own work
 * and may join another link.
 */
public final class Link implements AutoCloseable {
  private final String name;

  /** Text after the link's name in messages, and names the ranks of each job. */
  private final String whose;

  private final Communicator communicator;

  /**
   * Ranks of this job or, within one communicator, the senders. Within one communicator, null on a
   * rank that does not send.
   */
  private final @Nullable LinkSide side;

  private final LinkRanks ranks;
  private final boolean sends;
  private final boolean receives;

  /** Synchronizes the moves of two jobs; null within one communicator. */
  private final @Nullable Handover handover;

  /** True if the senders are Python ranks, whose parts of a plan the receivers compute. */
  private final boolean hasPythonSenders;

  /** Layout of this side's tensors that are added without a layout; null for none. */
  private final @Nullable Layout layout;

  private final @Nullable StepsMemo memo;

  private final AtomicReference<Thread> caller = new AtomicReference<>();

  private int registrations;

  /** Open transfers. Guarded by itself. */
  private final Set<LinkTransfer> transfers = Collections.newSetFromMap(new WeakHashMap<>());

  private volatile boolean closed;

  /** True once this rank knows that the senders have finished, so that no version follows. */
  private volatile boolean finished;

  /** Reports a link that was never closed, in place of reports for its communicators. */
  private final Leaks.Resource unclosed;

  /** Opens a link over {@code communicator}, which the link then owns and closes. Collective. */
  private Link(
      String name, String whose, LinkRanks ranks, Communicator communicator,
      @Nullable Handover handover, boolean hasPythonSenders, @Nullable Layout layout,
      @Nullable StepsMemo memo) {
    this.name = name;
    this.whose = whose;
    this.ranks = ranks;
    this.communicator = communicator;
    this.handover = handover;
    this.hasPythonSenders = hasPythonSenders;
    this.layout = layout;
    this.memo = memo;
    this.sends = ranks.sends(communicator.rank());
    this.receives = ranks.receives(communicator.rank());
    if (handover == null) {
      int[] senderRanks = ranks.senders();
      Communicator own = communicator.subgroup(senderRanks);
      this.side = own == null ? null : new LinkSide(communicator, own, senderRanks, "the senders");
    } else {
      this.side = handover.side();
    }
    communicator.endpoint().own();
    if (side != null) {
      side.communicator().endpoint().own();
      if (sends) {
        communicator.endpoint().abortsToo(side.communicator().endpoint());
      }
    }
    String what = "Link '" + name + "' of rank " + communicator.rank() + whose;
    this.unclosed = Leaks.watch(this, what, () -> {});
  }

  /**
   * Opens the link between two jobs. Layouts of each job use that job's own ranks. Collective over
   * both jobs.
   *
   * @param communicator ranks of both jobs, the senders first; the link owns and closes it
   * @param side ranks of this job; the link owns and closes it
   * @param memo cache of computed steps of this job's transfers
   * @hidden
   */
  @SuppressWarnings("exports")
  public static Link between(
      String name, LinkedJobs jobs, Communicator communicator, Communicator side, StepsMemo memo,
      Deadline until) {
    try {
      String here = jobs.text(name);
      Alike.require(
          communicator, until, Native.WL_OP_LINK, new Fingerprint().add(here), here);
      int senders = jobs.senders();
      return new Link(
          name, jobs.whose(), LinkRanks.ofJobs(name, senders, communicator.size() - senders),
          communicator, new Handover(communicator, side, senders, until), jobs.hasPythonSenders(),
          communicator.rank() < senders ? jobs.from() : jobs.to(), memo);
    } catch (RuntimeException | Error e) {
      try (side;
          communicator) {
        throw failed(communicator, "link '" + name + "'", e, List.of());
      }
    }
  }

  /**
   * Opens a link between two groups of ranks, senders and receivers. They may be disjoint, equal or
   * overlapping. Collective: every rank of the communicator makes the same call, even if it is in
   * neither group. The link has its own communicator, so it fails and is closed independently.
   *
   * @param communicator contains the ranks of both groups
   * @param name name of the link in messages, 1 to 64 bytes in UTF-8 without a slash
   * @param senders the ranks that send, in any order and grid
   * @param receivers the ranks that receive
   * @return null on a rank of neither group
   * @throws MismatchException on every rank, if ranks pass different names or groups; {@code
   *     communicator} stays usable
   */
  public static @Nullable Link open(
      Communicator communicator, String name, DeviceMesh senders, DeviceMesh receivers) {
    Objects.requireNonNull(communicator, "communicator");
    Names.require("name", name);
    Objects.requireNonNull(senders, "senders");
    Objects.requireNonNull(receivers, "receivers");
    TreeSet<Integer> both = new TreeSet<>(senders.ranks());
    both.addAll(receivers.ranks());
    if (both.last() >= communicator.size()) {
      throw new InvalidArgumentException(
          "link '" + name + "': a side holds rank " + both.last()
              + "; the communicator has ranks 0 to " + (communicator.size() - 1));
    }
    int[] ranks = both.stream().mapToInt(Integer::intValue).toArray();
    String operation = "link '" + name + "'";
    Fingerprint fingerprint = new Fingerprint().add(name);
    for (DeviceMesh side : List.of(senders, receivers)) {
      fingerprint.add(side.size());
      new TreeSet<>(side.ranks()).forEach(fingerprint::add);
    }
    Communicator own;
    try {
      Alike.require(
          communicator,
          Deadline.of(Deadline.DEFAULT),
          Native.WL_OP_LINK,
          fingerprint,
          "opens link '" + name + "' from mesh " + senders + " to mesh " + receivers);
      own = communicator.subgroup(ranks);
    } catch (WindlassException e) {
      throw Failures.within(operation, e);
    }
    if (own == null) {
      return null;
    }
    try {
      return new Link(
          name, "", LinkRanks.within(name, senders, receivers, ranks), own, null, false, null,
          null);
    } catch (RuntimeException | Error e) {
      try (own) {
        throw failed(own, operation, e, List.of());
      }
    }
  }

  /**
   * Returns the exception that this rank throws for {@code failure}. Aborts {@code communicator},
   * unless {@code failure} is of a class in {@code shared}.
   *
   * @param shared exception classes that every rank throws alike
   * @hidden
   */
  public static RuntimeException failed(
      Communicator communicator,
      String operation,
      Throwable failure,
      List<Class<? extends WindlassException>> shared) {
    end(communicator, operation, failure, shared);
    if (failure instanceof Error error) {
      throw error;
    }
    return failure instanceof WindlassException known
        ? Failures.within(operation, known)
        : (RuntimeException) failure;
  }

  /** Aborts {@code communicator} in the same cases as {@link #failed}. */
  static void end(
      Communicator communicator,
      String operation,
      Throwable failure,
      List<Class<? extends WindlassException>> shared) {
    if (shared.stream().noneMatch(kind -> kind.isInstance(failure))
        && communicator.failure().isEmpty()) {
      communicator.abort(reason(operation, failure));
    }
  }

  private static String reason(String operation, Throwable failure) {
    try {
      return operation + " failed there: " + failure;
    } catch (Throwable e) {
      return "a call on a link failed there with a throwable that has no text";
    }
  }

  /** Returns the name of the link. */
  public String name() {
    return name;
  }

  /**
   * Returns the communicator of the link. Its ranks are the ranks of both sides in ascending order;
   * between two jobs, senders come first. Messages of the link use its rank numbers. If it fails,
   * the link has failed, and {@link Communicator#abort} on it ends the link. Do not call operations
   * on it.
   */
  public Communicator communicator() {
    return communicator;
  }

  /** Returns true if this rank sends over the link. */
  public boolean sends() {
    return sends;
  }

  /** Returns true if this rank receives over the link. A rank may be both sender and receiver. */
  public boolean receives() {
    return receives;
  }

  /** Returns a builder of a transfer over this link. */
  public LinkTransferBuilder transferBuilder() {
    return new LinkTransferBuilder(this);
  }

  /**
   * Begins a call of this thread. All transfers of a link share its communicator, so only one
   * thread at a time calls operations.
   *
   * @throws InvalidArgumentException if another thread is in a call; nothing was sent
   */
  void enter(String what) {
    Thread other = caller.compareAndExchange(null, Thread.currentThread());
    if (other != null) {
      throw new InvalidArgumentException(
          what + ": link '" + name + "' is in a call of thread \"" + other.getName()
              + "\"; one thread at a time may call operations on it");
    }
  }

  void leave() {
    caller.set(null);
    if (closed) {
      kept().forEach(LinkTransfer::close);
    }
  }

  /**
   * Begins a call of this thread on all of {@code links}. If it throws, the call has begun on none
   * of them.
   */
  static void enter(String what, List<Link> links) {
    for (int i = 0; i < links.size(); i++) {
      try {
        links.get(i).enter(what);
      } catch (InvalidArgumentException e) {
        leave(links.subList(0, i));
        throw e;
      }
    }
  }

  static void leave(List<Link> links) {
    links.forEach(Link::leave);
  }

  /** Returns the senders' communicator, for a sender. */
  LinkSide senders() {
    return Objects.requireNonNull(side);
  }

  LinkRanks ranks() {
    return ranks;
  }

  boolean hasPythonSenders() {
    return hasPythonSenders;
  }

  /**
   * Returns the text of a call for messages, such as "register on link 'policy'". For packages of
   * Windlass.
   *
   * @hidden
   */
  public String operation(String what) {
    return what + " on link '" + name + "'" + whose;
  }

  boolean isFinished() {
    return finished;
  }

  void setFinished() {
    finished = true;
  }

  @Nullable Handover handover() {
    return handover;
  }

  /**
   * Returns the cache of computed steps of this job's transfers. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public StepsMemo memo() {
    return memo == null ? new StepsMemo() : memo;
  }

  /** Returns the layout of tensors that are added without one. Throws if the link has none. */
  Layout layout(String what) {
    if (layout == null) {
      throw new InvalidArgumentException(
          what + ": link '" + name
              + "' has no layout of its own; name one, or one as the jobs connect");
    }
    return layout;
  }

  /**
   * Returns the number of earlier registrations, and adds one to it. It is the same on all ranks.
   */
  int nextRegistration() {
    return registrations++;
  }

  void keep(LinkTransfer transfer) {
    synchronized (transfers) {
      transfers.add(transfer);
      if (!closed) {
        return;
      }
    }
    transfer.close();
  }

  void letGo(LinkTransfer transfer) {
    synchronized (transfers) {
      transfers.remove(transfer);
    }
  }

  private List<LinkTransfer> kept() {
    synchronized (transfers) {
      return new ArrayList<>(transfers);
    }
  }

  /**
   * Leaves the link, and closes its transfers. If a call is in progress on this rank, it throws
   * {@link ClosedException}. Calls of peers throw an {@link AbortedException} that names this rank.
   * Received tensors stay readable. Idempotent.
   */
  @Override
  public void close() {
    unclosed.closed();
    try {
      leaveAll();
    } finally {
      synchronized (transfers) {
        closed = true;
      }
      // A call in progress reports which tensors are incomplete, and closes the transfers itself.
      if (caller.get() == null) {
        kept().forEach(LinkTransfer::close);
      }
    }
  }

  private void leaveAll() {
    Communicator own = side == null ? null : side.communicator();
    try (communicator;
        own;
        handover) {
      // This closes all of them in the opposite order, even if one close fails.
    }
  }

  @Override
  public String toString() {
    return "Link '" + name + "'" + whose + " " + ranks;
  }
}
