// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
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
import org.windlass.internal.transfer.Until;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;

/**
 * A link of two sides of a communicator, senders and receivers, between which tensors move version
 * after version. Each side knows its own layouts alone: a trainer adds what it holds, a fleet names
 * what it takes, and {@link LinkBatch#register} makes one plan of both.
 *
 * <pre>{@code
 * Link link = Link.open(comm, "policy", trainers, fleet);
 *
 * var batch = link.batch().wire(BF16)                            // on a rank of the trainers
 *     .add("l0.q_proj", shape, q, trainers.layout(partial(SUM), shard(0)))
 *     .register(ofMinutes(1));
 * for (long v = 1; train(); v++) batch.send(v);
 *
 * var batch = link.batch()                                       // on a rank of the fleet
 *     .into("l0.q_proj", shape, q, fleet.layout(shard(0)))
 *     .register(ofMinutes(1));
 * for (long v = batch.receive(); ; v = batch.receive()) serve(batch.tensor("l0.q_proj"));
 * }</pre>
 *
 * <p>{@link org.windlass.job.Job#meet} makes one of two jobs, each with a communicator of its own. There a layout is
 * over ranks as its own job counts them.
 *
 * <p>A link has a communicator of its own: when it fails, each side goes on with its own work and
 * may join another.
 */
public final class Link implements AutoCloseable {
  private final String name;

  /** Behind the name in messages, which name ranks of the link: whose they are. */
  private final String whose;

  private final Communicator communicator;

  /** The senders alone; null on other ranks. */
  private final LinkSide senders;

  /** For each rank of {@code senders} its rank of the link, ascending. */
  private final int[] senderRanks;

  private final Side sending;
  private final Side receiving;
  private final boolean sends;
  private final boolean receives;

  /** Between two jobs; null where both sides are of one communicator. */
  private final Handover handover;

  /** Whether the senders are guests, whose parts of a plan the receivers make. */
  private final boolean hasGuests;

  /** For tensors of which no layout is named; null for none. */
  private final Layout layout;

  /** This job's; null where both sides are of one communicator. */
  private final StepsMemo memo;

  /** The thread whose call is in progress. */
  private final AtomicReference<Thread> caller = new AtomicReference<>();

  private int registrations;

  /** What was registered here and not closed; guarded by itself. */
  private final List<WeakReference<LinkTransfer>> transfers = new ArrayList<>();

  private volatile boolean closed;

  private final Unclosed unclosed;

  /** A link that nobody has closed yet, in place of its communicators. */
  private static final class Unclosed extends Leaks.Resource {
    Unclosed(String what) {
      super(what);
    }

    @Override
    protected void free() {}
  }

  /**
   * One side of a link.
   *
   * @param mesh of the ranks as whoever names them counts them
   * @param counted all that are counted so, ascending
   * @param first rank of the link of those
   */
  private record Side(DeviceMesh mesh, int[] counted, int first) {
    int linked(int rank) {
      return first + Arrays.binarySearch(counted, rank);
    }

    /** As the side counts it; -1 where the side has no such rank. */
    int own(int linked) {
      int place = linked - first;
      return place >= 0 && place < counted.length ? counted[place] : -1;
    }

    int[] linked() {
      return mesh.ranks().stream().mapToInt(this::linked).sorted().toArray();
    }

    /** Job {@code size} ranks, of which the link counts {@code first} before them. */
    static Side ofJob(int size, int first) {
      return new Side(DeviceMesh.of(size), IntStream.range(0, size).toArray(), first);
    }
  }

  /** Collective over {@code communicator}, which it takes over. */
  private Link(
      String name,
      String whose,
      Side sending,
      Side receiving,
      Communicator communicator,
      Handover handover,
      boolean hasGuests,
      Layout layout,
      StepsMemo memo) {
    this.name = name;
    this.whose = whose;
    this.sending = sending;
    this.receiving = receiving;
    this.communicator = communicator;
    this.handover = handover;
    this.hasGuests = hasGuests;
    this.layout = layout;
    this.memo = memo;
    this.senderRanks = sending.linked();
    this.sends = Arrays.binarySearch(senderRanks, communicator.rank()) >= 0;
    this.receives = Arrays.binarySearch(receiving.linked(), communicator.rank()) >= 0;
    if (handover == null) {
      Communicator own = communicator.subset(senderRanks);
      this.senders =
          own == null ? null : new LinkSide(communicator, own, senderRanks, "the senders");
    } else {
      this.senders = sends ? handover.side() : null;
    }
    if (senders != null) {
      communicator.endpoint().abortsToo(senders.communicator().endpoint());
    }
    this.unclosed =
        new Unclosed("Link '" + name + "' of rank " + communicator.rank() + whose);
    communicator.endpoint().own();
    for (LinkSide part : new LinkSide[] {senders, handover == null ? null : handover.side()}) {
      if (part != null) {
        part.communicator().endpoint().own();
      }
    }
    Leaks.watch(this, unclosed);
  }

  /**
   * Collective over two jobs: the link of the first {@code senders} ranks of a communicator with
   * the rest; layouts are by ranks as each job counts its own.
   *
   * @param whose what messages say of the ranks
   * @param communicator of both, which the link takes over
   * @param side the ranks of this job, which the link takes over
   * @param hasGuests whether the senders are guests
   * @param from layout of the source, for tensors of which none is named; may be null
   * @param to of the target
   * @param memo of this job
   * @hidden
   */
  @SuppressWarnings("exports")
  public static Link between(
      String name,
      String whose,
      Communicator communicator,
      Communicator side,
      int senders,
      boolean hasGuests,
      Layout from,
      Layout to,
      StepsMemo memo,
      Until until) {
    try {
      String here =
          "meets as '" + name + "' from layout " + qualified(from) + " to layout " + qualified(to)
              + whose;
      Alike.require(
          communicator, until, Native.WL_OP_LINK, new Fingerprint().add(here), here);
      return new Link(
          name,
          whose,
          Side.ofJob(senders, 0),
          Side.ofJob(communicator.size() - senders, senders),
          communicator,
          new Handover(communicator, side, senders, until),
          hasGuests,
          communicator.rank() < senders ? from : to,
          memo);
    } catch (RuntimeException | Error e) {
      try (side;
          communicator) {
        throw failed(communicator, "link '" + name + "'", e, List.of());
      }
    }
  }

  /** As jobs tell one another; guests, which parse none, compare it too. */
  private static String qualified(Layout layout) {
    return layout == null ? "none" : layout.qualified();
  }

  /**
   * Collective: joins two sides of a communicator, senders and receivers; they may be disjoint,
   * equal or overlapping. Every rank calls it alike, also one of neither side. The link has a
   * communicator, and so a failure record, of its own, and is closed on its own.
   *
   * @param communicator whose ranks the sides name
   * @param name what the link is called in messages, at most 64 bytes without a slash
   * @param senders the ranks of one side, whatever their order and grid
   * @param receivers the ranks of the other
   * @return null on a rank of neither side
   * @throws MismatchException on every rank, if ranks name another link or other sides; {@code
   *     communicator} goes on
   */
  public static Link open(
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
          new Until(Deadline.DEFAULT),
          Native.WL_OP_LINK,
          fingerprint,
          "opens link '" + name + "' from mesh " + senders + " to mesh " + receivers);
      own = communicator.subset(ranks);
    } catch (WindlassException e) {
      throw Failures.within(operation, e);
    }
    if (own == null) {
      return null;
    }
    try {
      return new Link(
          name,
          "",
          new Side(senders, ranks, 0),
          new Side(receivers, ranks, 0),
          own,
          null,
          false,
          null,
          null);
    } catch (RuntimeException | Error e) {
      try (own) {
        throw failed(own, operation, e, List.of());
      }
    }
  }

  /**
   * What a step of {@code operation} on this rank throws for {@code failure}, named by it. Unless
   * every rank has the failure, peers get it now: the communicator ends.
   *
   * @param shared those that leave a communicator which lives are every rank's
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

  /** What {@link #failed} does to peers. */
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

  /** The name that both sides gave it: of two jobs, that of their pair. */
  public String name() {
    return name;
  }

  /**
   * The ranks of both sides, in ascending order: those that the link's errors name, and the same as
   * the ones that it was made from where those are all on a side. Of two jobs, senders come first.
   * Its failure is the link's, and to {@link Communicator#abort} it ends the link; the link makes
   * the calls on it.
   */
  public Communicator communicator() {
    return communicator;
  }

  /** Whether this rank is a sender. */
  public boolean sends() {
    return sends;
  }

  /** Whether this rank is a receiver; it may be both. */
  public boolean receives() {
    return receives;
  }

  /** Tensors that move together. */
  public LinkBatch batch() {
    return new LinkBatch(this);
  }

  /**
   * Makes the calling thread the one that calls operations of this link, whichever of its batches
   * they are of: they share its communicator.
   *
   * @throws InvalidArgumentException where another thread does; nothing was sent
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
      closeKept();
    }
  }

  /** {@link #enter(String)} of all of {@code links}, or of none. */
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

  /** The senders alone, in ascending order; null on another rank. */
  LinkSide senders() {
    return senders;
  }

  int[] senderRanks() {
    return senderRanks;
  }

  int firstReceiver() {
    return receiving.linked()[0];
  }

  boolean hasGuests() {
    return hasGuests;
  }

  /**
   * {@code what} as messages name it: "register on link 'policy'". For packages of Windlass.
   *
   * @hidden
   */
  public String operation(String what) {
    return what + " on link '" + name + "'" + whose;
  }

  /** Null where both sides are of one communicator. */
  Handover handover() {
    return handover;
  }

  /**
   * For a batch. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public StepsMemo memo() {
    return memo == null ? new StepsMemo() : memo;
  }

  /** For a tensor of which none is named. */
  Layout layout(String what) {
    if (layout == null) {
      throw new InvalidArgumentException(
          what + ": link '" + name + "' has no layout of its own; name one, or one at the meeting");
    }
    return layout;
  }

  /** How many batches this rank has registered before; they count alike on every rank. */
  int nextRegistration() {
    return registrations++;
  }

  /** {@code layout} by ranks of the link; its ranks belong to one side. */
  Layout within(String what, boolean isSender, Layout layout) {
    Side side = isSender ? sending : receiving;
    int[] linked = new int[layout.mesh().size()];
    for (int place = 0; place < linked.length; place++) {
      int rank = layout.mesh().rankOf(place);
      if (!side.mesh.contains(rank)) {
        throw new InvalidArgumentException(
            what + ": layout " + layout + " holds rank " + rank + ", which is no "
                + (isSender ? "sender" : "receiver") + " of link '" + name + "' (" + side.mesh
                + ")");
      }
      linked[place] = side.linked(rank);
    }
    return new Layout(layout.mesh().ranks(linked), layout.placements());
  }

  /** What {@link #within} has made of a layout as messages have it: as that side has named it. */
  String named(boolean isSender, Layout layout) {
    Side side = isSender ? sending : receiving;
    DeviceMesh mesh = layout.mesh();
    int[] own = new int[mesh.size()];
    for (int place = 0; place < own.length; place++) {
      own[place] = side.own(mesh.rankOf(place));
      if (own[place] < 0) {
        return layout.qualified();
      }
    }
    return new Layout(mesh.ranks(own), layout.placements()).toString();
  }

  /** This rank as that side counts it, which has it. */
  int counted(boolean isSender) {
    return (isSender ? sending : receiving).own(communicator.rank());
  }

  /** Has {@link #close} close a transfer that moves over this link, too. */
  void keep(LinkTransfer transfer) {
    synchronized (transfers) {
      transfers.removeIf(each -> each.get() == null);
      transfers.add(new WeakReference<>(transfer));
      if (!closed) {
        return;
      }
    }
    transfer.close();
  }

  /** What {@link #keep} was given is closed. */
  void letGo(LinkTransfer transfer) {
    synchronized (transfers) {
      transfers.removeIf(each -> each.get() == null || each.get() == transfer);
    }
  }

  private void closeKept() {
    List<LinkTransfer> kept;
    synchronized (transfers) {
      kept = transfers.stream().map(WeakReference::get).filter(Objects::nonNull).toList();
    }
    kept.forEach(LinkTransfer::close);
  }

  /**
   * Leaves the link, and closes what was registered on it. A call in progress on this rank ends
   * with {@link ClosedException} first; a peer's, now or later, with an {@link AbortedException}
   * that says who has left. What has been received stays readable. Idempotent.
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
      // A call that is ending still says what of its transfer is torn, and does this itself.
      if (caller.get() == null) {
        closeKept();
      }
    }
  }

  private void leaveAll() {
    if (handover != null) {
      handover.close();
    }
    LinkSide part = handover == null ? senders : handover.side();
    WindlassException first = part == null ? null : closing(part.communicator());
    WindlassException second = closing(communicator);
    if (first != null && second != null) {
      first.addSuppressed(second);
    }
    if (first != null || second != null) {
      throw first != null ? first : second;
    }
  }

  /** What closing it throws, or null. */
  private static WindlassException closing(Communicator communicator) {
    try {
      communicator.close();
      return null;
    } catch (WindlassException e) {
      return e;
    }
  }

  @Override
  public String toString() {
    return "Link '" + name + "'" + whose + " from " + sending.mesh + " to " + receiving.mesh;
  }
}
