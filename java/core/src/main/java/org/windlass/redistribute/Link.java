// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;
import org.windlass.ClosedException;
import org.windlass.Communicator;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.WindlassException;
import org.windlass.internal.Access;
import org.windlass.internal.Deadlines;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Native;
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
 * <p>A link has a communicator of its own: when it fails, each side goes on with its own work and
 * may join another.
 */
public final class Link implements AutoCloseable {
  private final String name;
  private final Communicator communicator;

  /** The senders alone; null on other ranks. */
  private final Communicator senders;

  /** For each rank of {@code senders} its rank of the link, ascending. */
  private final int[] senderRanks;

  /** For each rank of the link its rank where the link was made, ascending. */
  private final int[] ranks;

  private final DeviceMesh sending;
  private final DeviceMesh receiving;
  private final int rankBefore;

  /** The thread whose call is in progress. */
  private final AtomicReference<Thread> caller = new AtomicReference<>();

  private int registrations;

  private Link(
      String name,
      DeviceMesh sending,
      DeviceMesh receiving,
      int[] ranks,
      int rankBefore,
      Communicator communicator,
      Communicator senders,
      int[] senderRanks) {
    this.name = name;
    this.sending = sending;
    this.receiving = receiving;
    this.ranks = ranks;
    this.rankBefore = rankBefore;
    this.communicator = communicator;
    this.senders = senders;
    this.senderRanks = senderRanks;
    if (senders != null) {
      Access.ENDPOINT.of(communicator).abortsToo(Access.ENDPOINT.of(senders));
    }
  }

  /**
   * Collective: joins two sides of a communicator, senders and receivers; they may be disjoint,
   * equal or overlapping. Every rank calls it alike, also one of neither side. The link has a
   * communicator, and so a failure record, of its own, and is closed on its own.
   *
   * @param communicator whose ranks the sides name
   * @param name what the link is called in messages
   * @param senders the ranks of one side, whatever their order and grid
   * @param receivers the ranks of the other
   * @return null on a rank of neither side
   * @throws MismatchException on every rank of a side, if ranks name another link or other sides
   */
  public static Link open(
      Communicator communicator, String name, DeviceMesh senders, DeviceMesh receivers) {
    Objects.requireNonNull(communicator, "communicator");
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(senders, "senders");
    Objects.requireNonNull(receivers, "receivers");
    TreeSet<Integer> both = new TreeSet<>(senders.ranks());
    both.addAll(receivers.ranks());
    if (both.last() >= communicator.size()) {
      throw new InvalidArgumentException(
          "link '"
              + name
              + "': a side holds rank "
              + both.last()
              + "; the communicator has ranks 0 to "
              + (communicator.size() - 1));
    }
    int[] ranks = both.stream().mapToInt(Integer::intValue).toArray();
    String operation = "link '" + name + "'";
    Communicator own;
    try {
      own = communicator.subset(ranks);
    } catch (WindlassException e) {
      throw within(operation, e);
    }
    if (own == null) {
      return null;
    }
    try {
      agree(own, name, senders, receivers);
      int[] senderRanks =
          senders.ranks().stream().mapToInt(r -> Arrays.binarySearch(ranks, r)).sorted().toArray();
      return new Link(
          name,
          senders,
          receivers,
          ranks,
          communicator.rank(),
          own,
          own.subset(senderRanks),
          senderRanks);
    } catch (RuntimeException | Error e) {
      try (own) {
        throw failed(own, operation, e, List.of(MismatchException.class));
      }
    }
  }

  /**
   * What a step of {@code operation} on this rank throws for {@code failure}, named by it. Unless
   * every rank has the failure, peers get it now: the communicator ends.
   *
   * @param shared those that leave a communicator which lives are every rank's
   */
  static RuntimeException failed(
      Communicator communicator,
      String operation,
      Throwable failure,
      List<Class<? extends WindlassException>> shared) {
    if (shared.stream().noneMatch(kind -> kind.isInstance(failure))
        && communicator.failure().isEmpty()) {
      communicator.abort(reason(operation, failure));
    }
    if (failure instanceof Error error) {
      throw error;
    }
    return failure instanceof WindlassException known
        ? within(operation, known)
        : (RuntimeException) failure;
  }

  /** The same failure as seen in {@code operation}, whose part the one that failed was. */
  private static WindlassException within(String operation, WindlassException failure) {
    WindlassException whole =
        WindlassException.of(
            failure.code().number(),
            operation + ": " + failure.getMessage(),
            failure.getCause(),
            operation,
            failure.culprits());
    whole.setStackTrace(failure.getStackTrace());
    for (Throwable suppressed : failure.getSuppressed()) {
      whole.addSuppressed(suppressed);
    }
    return whole;
  }

  private static String reason(String operation, Throwable failure) {
    try {
      return operation + " failed there: " + failure;
    } catch (Throwable e) {
      return "a call on a link failed there with a throwable that has no text";
    }
  }

  private static void agree(
      Communicator communicator, String name, DeviceMesh sending, DeviceMesh receiving) {
    Fingerprint fingerprint = new Fingerprint().add(name);
    for (DeviceMesh side : List.of(sending, receiving)) {
      fingerprint.add(side.size());
      new TreeSet<>(side.ranks()).forEach(fingerprint::add);
    }
    long[][] all = Gathered.words(
            communicator, new Until(Deadlines.DEFAULT), Native.WL_OP_LINK, fingerprint.value());
    for (int rank = 1; rank < all.length; rank++) {
      if (all[rank][0] != all[0][0]) {
        throw new MismatchException(
            "rank 0 and rank "
                + rank
                + " of it name another link or other sides; here senders are "
                + sending
                + " and receivers "
                + receiving,
            null,
            "",
            List.of(0, rank));
      }
    }
  }

  /** The name that both sides gave it. */
  public String name() {
    return name;
  }

  /**
   * The ranks of both sides, in ascending order: those that the link's errors name, and the same as
   * the ones that it was made from where those are all on a side. Its failure is the link's, and to
   * {@link Communicator#abort} it ends the link; the link makes the calls on it.
   */
  public Communicator communicator() {
    return communicator;
  }

  /** Whether this rank is a sender. */
  public boolean sends() {
    return sending.contains(rankBefore);
  }

  /** Whether this rank is a receiver; it may be both. */
  public boolean receives() {
    return receiving.contains(rankBefore);
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
          what
              + ": link '"
              + name
              + "' is in a call of thread \""
              + other.getName()
              + "\"; one thread at a time may call operations on it");
    }
  }

  void leave() {
    caller.set(null);
  }

  /** The senders alone, in ascending order; null on another rank. */
  Communicator senders() {
    return senders;
  }

  int[] senderRanks() {
    return senderRanks;
  }

  /** {@code what} as messages name it: "register on link 'policy'". */
  String operation(String what) {
    return what + " on link '" + name + "'";
  }

  /** How many batches this rank has registered before; they count alike on every rank. */
  int nextRegistration() {
    return registrations++;
  }

  /** {@code layout} by ranks of the link; its ranks belong to one side. */
  Layout within(String what, boolean isSender, Layout layout) {
    DeviceMesh side = isSender ? sending : receiving;
    int[] linked = new int[layout.mesh().size()];
    for (int place = 0; place < linked.length; place++) {
      int rank = layout.mesh().rankOf(place);
      if (!side.contains(rank)) {
        throw new InvalidArgumentException(
            what
                + ": layout "
                + layout.qualified()
                + " holds rank "
                + rank
                + ", which is no "
                + (isSender ? "sender" : "receiver")
                + " of link '"
                + name
                + "' ("
                + side
                + ")");
      }
      linked[place] = Arrays.binarySearch(ranks, rank);
    }
    return new Layout(layout.mesh().ranks(linked), layout.placements());
  }

  /**
   * Leaves the link. A call in progress on this rank ends with {@link ClosedException} first. What
   * has been received stays readable. Idempotent.
   */
  @Override
  public void close() {
    WindlassException first = senders == null ? null : closing(senders);
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
    return "Link '" + name + "' from " + sending + " to " + receiving;
  }
}
