// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.DeviceException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.PeerMemory;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.EndpointOwner;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.rendezvous.OwnStore;
import org.windlass.internal.report.RankLook;
import org.windlass.kernel.Target;
import org.windlass.launch.Rendezvous;
import org.windlass.report.Report;

/**
 * A communicator as one rank has it: the ranks that joined, their deadline and their one failure
 * record.
 *
 * <p>Operations are collective: every rank calls the same ones in the same order; but those of a
 * {@link Window} are one rank's own. One thread at a time calls operations on a rank; {@link
 * #abort}, {@link #close} and the queries are legal from any thread at any time. When an operation
 * returns, its outputs are complete and its inputs may be changed or freed.
 *
 * <p>An operation takes no longer than its deadline. After {@link DeadlineExceededException},
 * {@link PeerLostException}, {@link AbortedException}, {@link MismatchException} or {@link
 * DeviceException} the communicator is dead: every further operation throws the same, and {@link
 * #shrink} makes a new one of the ranks that live. A thread that is interrupted while an operation
 * blocks leaves it with an AbortedException, its interrupt flag set.
 *
 * <p>A rank compares what it calls with what every peer calls that it waits for, before it uses
 * anything of that peer's. Where it waits for nobody, as the root of a small broadcast does, an
 * operation that ranks disagree in may return normally: the MismatchException comes from the next
 * one, or from {@link #close}.
 *
 * <p>An operation runs on its caller's thread. What is submitted by {@link #runAsync}, called from
 * a virtual or ForkJoin thread, or called while such operations are queued, runs on a platform
 * thread of the communicator's own.
 */
@SuppressWarnings("exports") // what packages of Windlass alone use
public final class Communicator extends Collectives implements AutoCloseable, EndpointOwner {
  private final Duration deadline;
  private final Membership membership;

  /** Keeps the group reachable, so that it isn't taken for a leak. */
  private final LocalGroup group;

  /**
   * The one that this came from, which stays reachable as long: what reaches all goes through it.
   */
  @SuppressWarnings("unused")
  private Communicator origin;

  /**
   * Takes over a native handle.
   *
   * @param group the group that the handle belongs to and is closed with; null if it stands alone
   * @param maker the call that made it, for what is said of one that nobody closes
   */
  Communicator(long handle, Duration deadline, LocalGroup group, String maker) {
    super(new Endpoint(handle), Deadline.DEFAULT, null);
    this.deadline = deadline;
    this.group = group;
    String what =
        group != null
            ? null
            : "Communicator of rank " + endpoint.rank + " of " + endpoint.size + " (" + maker + ")";
    this.membership = new Membership(what, endpoint);
    Leaks.watch(this, membership);
  }

  /**
   * Makes a communicator that stands alone. For packages of Windlass.
   *
   * @param handle a {@code wl_comm_t*}, which it takes over
   * @param deadline of calls that name none
   * @param maker the call that made it, for what is said of one that nobody closes
   * @hidden
   */
  public static Communicator of(long handle, Duration deadline, String maker) {
    return of(handle, deadline, null, maker);
  }

  /**
   * For packages of Windlass.
   *
   * @hidden
   */
  @Override
  public Endpoint endpoint() {
    return endpoint;
  }

  /** {@link #fromEnvironment(CommunicatorOptions, Duration)} with defaults and 60 seconds. */
  public static Communicator fromEnvironment() {
    return fromEnvironment(CommunicatorOptions.defaults(), Duration.ofSeconds(60));
  }

  /**
   * Collective: joins the other ranks that a launcher started, each a process; see {@link
   * org.windlass.launch.LaunchEnvironment} for the variables that say which rank this process is,
   * and {@link org.windlass.launch.LaunchEnvironment#rendezvous} for where they find each other.
   * Where all live on one host, peers reach the tensors of a {@link Window} and of a {@link
   * MemoryPool} as they are, and what others hold is copied from one process to another; where they
   * live on several, so is all that collectives and transfers move.
   *
   * @param options the same on all ranks; cores 0 means those that all ranks together may use
   * @param deadline for all ranks to have come
   * @throws DeadlineExceededException if some have not; it names them
   * @throws InvalidArgumentException if the environment has no launcher's variables, or wrong ones
   * @throws ResourceException if rank 0 can't announce the rendezvous, or does so for another job
   * @throws MismatchException if ranks run different versions, or ask for different options
   * @throws UnsupportedException if ranks live on several hosts, and one of them has no UCX, or
   *     none of the networks that its settings name
   */
  public static Communicator fromEnvironment(CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(deadline, "deadline");
    return new EnvironmentStart(System.getenv(), 1, options, deadline).join();
  }

  /**
   * Collective: joins the other ranks by what has started them; each calls it on a thread of its
   * own, with its own {@link Rendezvous}. Ranks of one process share memory as threads do, those of
   * several as {@link #fromEnvironment(CommunicatorOptions, Duration)} has them.
   *
   * @param rendezvous called four times at most; another start of the same ranks waits until this
   *     one is over
   * @param options the same on all ranks; cores 0 means those that all ranks together may use
   * @param deadline for all ranks to have come
   * @throws DeadlineExceededException if some have not
   * @throws MismatchException if ranks run different versions, ask for different options, or say
   *     what is no part of a start
   * @throws UnsupportedException if ranks live on several hosts, and one of them has no UCX, or
   *     none of the networks that its settings name; in one process under several class loaders; or
   *     the natives don't load for one of them
   */
  public static Communicator meet(
      Rendezvous rendezvous, CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(rendezvous, "rendezvous");
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(deadline, "deadline");
    long handle = RendezvousStart.join(rendezvous, options, deadline);
    return of(handle, options.deadline(), null, "meet");
  }

  /**
   * Takes over a native handle, which is closed if that fails: its peers would wait for this rank.
   */
  static Communicator of(long handle, Duration deadline, LocalGroup group, String maker) {
    try {
      return new Communicator(handle, deadline, group, maker);
    } catch (Throwable e) {
      // It is not freed: the watcher may know it already.
      Native.wl_comm_close(handle, 0);
      throw e;
    }
  }

  /** How long an operation may take when its call names no deadline. */
  public Duration deadline() {
    return deadline;
  }

  /** Returns the target for which the loaded kernels are compiled. */
  public Target target() {
    return Target.loaded();
  }

  /**
   * Returns this rank's operations with another deadline: {@code
   * comm.withDeadline(ofMillis(5)).barrier()}. Keep the result if calls are frequent.
   */
  public Collectives withDeadline(Duration deadline) {
    return new Collectives(endpoint, Deadline.nanos(deadline), this);
  }

  /** Collective: {@code bytes} bytes on every rank, zeroed, aligned to 4,096. */
  public Window window(long bytes) {
    return MemoryCalls.window(this, bytes, Deadline.DEFAULT);
  }

  /** {@link #window(long)} with a deadline of its own. */
  public Window window(long bytes, Duration deadline) {
    return MemoryCalls.window(this, bytes, Deadline.nanos(deadline));
  }

  /**
   * Collective: {@code bytes} bytes of the device of every rank, zeroed. Its tensors lie on
   * devices: collectives take them where they lie if all ranks share a device, and copies of them
   * otherwise, and {@link Window#put} and its kin move elements between them and tensors of the
   * host or of a device.
   *
   * @throws UnsupportedException if the target has no devices on which callers have tensors, as
   *     {@code cuda} has; or devices don't reach one another; or ranks live in several processes,
   *     which a device's memory can't go to
   * @throws ResourceException if a device has no room for it: what was asked for and what is free
   */
  public Window deviceWindow(long bytes) {
    return MemoryCalls.deviceWindow(this, bytes, Deadline.DEFAULT);
  }

  /** {@link #deviceWindow(long)} with a deadline of its own. */
  public Window deviceWindow(long bytes, Duration deadline) {
    return MemoryCalls.deviceWindow(this, bytes, Deadline.nanos(deadline));
  }

  /**
   * Collective: memory for {@code bytes} bytes of tensors on every rank, in whole pages, that ranks
   * allocate by themselves and all ranks' processes of its host map. Until then it takes none: it
   * may be as large as all that tensors ever need.
   *
   * @param bytes 1 or more
   */
  public MemoryPool memoryPool(long bytes) {
    return MemoryCalls.memoryPool(this, bytes, Deadline.DEFAULT);
  }

  /** {@link #memoryPool(long)} with a deadline of its own. */
  public MemoryPool memoryPool(long bytes, Duration deadline) {
    return MemoryCalls.memoryPool(this, bytes, Deadline.nanos(deadline));
  }

  /**
   * Collective: ranks of one color form a new communicator, where they are ordered by key, then
   * by rank here. It has a control block and a failure record of its own, and is closed on its own.
   *
   * @param color 0 or more; a rank with a negative color takes part but joins nothing
   * @return null for a negative color
   */
  public Communicator split(int color, int key) {
    return split(color, key, Deadline.DEFAULT);
  }

  /** {@link #split(int, int)} with a deadline of its own. */
  public Communicator split(int color, int key, Duration deadline) {
    return split(color, key, Deadline.nanos(deadline));
  }

  private Communicator split(int color, int key, long deadlineNs) {
    return join(
        "from split",
        (out, error) -> Native.wl_comm_split(endpoint.handle, color, key, deadlineNs, out, error));
  }

  /**
   * Collective: the listed ranks form a new communicator, where they are ranks 0, 1, ... in the
   * order of the list. Every rank calls it with the same list, also one that isn't listed. Lists of
   * several calls may overlap: each communicator has a control block and a failure record of its
   * own, and is closed on its own.
   *
   * @return null on a rank that isn't listed
   */
  public Communicator subgroup(int... ranks) {
    ByteBuffer list = NativeMemory.copy(Objects.requireNonNull(ranks, "ranks"));
    long address = NativeMemory.address(list);
    int count = ranks.length;
    try {
      return join(
          "from subgroup",
          (out, error) ->
              Native.wl_comm_subgroup(
                  endpoint.handle, address, count, Deadline.DEFAULT, out, error));
    } finally {
      Reference.reachabilityFence(list);
    }
  }

  /**
   * Returns this communicator's ranks in rank order, each as its number in the parent. The parent
   * is the communicator from which {@link #subgroup}, {@link #split} or {@link #shrink} made this
   * one. Empty if there is no parent. Legal from any thread at any time.
   */
  public List<Integer> parentRanks() {
    try {
      return RankLook.former(endpoint);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Returns the rank here that has number {@code parentRank} in the parent, which {@link
   * #parentRanks} describes. Legal from any thread at any time.
   *
   * @throws InvalidArgumentException if that rank is no member here, or this communicator has no
   *     parent; the message lists the members
   */
  public int rankFromParent(int parentRank) {
    List<Integer> members = parentRanks();
    int rank = members.indexOf(parentRank);
    if (rank < 0) {
      throw new InvalidArgumentException(
          members.isEmpty()
              ? "rankFromParent: " + this + " was made from no other communicator"
              : "rankFromParent: rank " + parentRank + " is no member; the members are ranks "
                  + members);
    }
    return rank;
  }

  /**
   * After a failure: the ranks that live form a new communicator, in the order that they have here.
   * Every rank that lives calls it, whatever failure it got; those that died or closed are not
   * waited for. Once all others have come, or the deadline of one of them has passed, those that
   * have come go on: a process that is stopped costs the deadline, one that is dead nothing. Where
   * a rank dies meanwhile, or can't take part, the others agree anew without it, which may take
   * some seconds beyond the deadline.
   *
   * <p>Across hosts a failure that comes while ranks agree may leave some of them with a new
   * communicator that has failed already, with {@link PeerLostException} or {@link
   * AbortedException} at its next call: call shrink on that one. Hosts that are cut off from one
   * another go on apart, each side with a communicator of its own; where only one of them may, let
   * it be the one whose {@link #size} is more than half of this one's.
   *
   * <p>The new communicator has a control block and a failure record of its own, and no window:
   * those that are needed are made again. This one stays dead; close it, and what lies in its
   * windows, once nothing of them is needed. After {@link DeadlineExceededException} the call may
   * be repeated.
   *
   * @param deadline how long it waits for ranks that neither came nor died; the same on all ranks,
   *     and longer than an operation's, so that all have learnt of the failure by then
   * @throws AbortedException if the others have gone on without this rank, which had not come by
   *     their deadline: it throws the same from every call on this communicator from then on, and
   *     nothing that the rank still writes reaches them
   * @throws InvalidArgumentException if the communicator lives, which {@link #abort} ends, or has
   *     been shrunk by this rank
   * @throws ResourceException if this process has no memory or no file left for it; the others go
   *     on
   */
  public Communicator shrink(Duration deadline) {
    long deadlineNs = Deadline.nanos(deadline);
    try {
      return adopt(
          "from shrink",
          endpoint.callAfterFailure(
              (out, error) -> Native.wl_comm_shrink(endpoint.handle, deadlineNs, out, error)));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Makes a communicator from this one; null where the native call gives no handle.
   *
   * @param maker the call, for what is said of one that nobody closes
   */
  Communicator join(String maker, Endpoint.NativeCall nativeCall) {
    return adopt(maker, call(nativeCall));
  }

  private Communicator adopt(String maker, long handle) {
    if (handle == 0) {
      return null;
    }
    Communicator child = of(handle, deadline, null, maker);
    try {
      membership.joined(child);
      child.origin = this;
      child.endpoint.cameFrom(endpoint);
      return child;
    } catch (Throwable e) {
      child.close();
      throw e;
    }
  }

  /** Closes {@code other}, which may be null, when this is closed. */
  void keep(OwnStore other) {
    membership.keep(other);
  }

  /** Makes a collective call that names no memory of the caller's; its out-parameter. */
  long call(Endpoint.NativeCall nativeCall) {
    try {
      return endpoint.call(nativeCall);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Ends the communicator on every rank: those inside an operation, or at their next one, get an
   * {@link AbortedException} with {@code reason}. The first failure stands; a later one changes
   * nothing.
   *
   * @param reason may be null, as an exception's message may
   */
  public void abort(String reason) {
    endpoint.abortAsAsked(reason == null ? "no reason given" : reason);
    Reference.reachabilityFence(this);
  }

  /**
   * {@link #abort} of this communicator and of those that this rank has come to from it, by {@link
   * #split} and the like: for a rank that ends with an error, whose peers may wait in any of them.
   */
  public void abortAll(String reason) {
    abort(reason);
    children().forEach(child -> child.abortAll(reason));
  }

  /** Those that this rank has come to from it, as long as somebody has them. */
  List<Communicator> children() {
    return membership.children();
  }

  /** Why the communicator is dead; empty while it lives. */
  public Optional<WindlassException> failure() {
    try {
      return Optional.ofNullable(endpoint.failure());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Where every rank is: the operation that it is in or was in last, since when, whom it waits for,
   * and what it did before. From any thread at any time, while ranks are inside operations too, and
   * after a failure; it holds up nobody.
   */
  public Report report() {
    try {
      return Report.of(RankLook.all(endpoint), endpoint.failure(), PeerMemory.of(endpoint.handle));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Leaves the communicator. An operation in progress on this rank ends with {@link
   * ClosedException} first, as do those queued and every later one; a peer that waits for this rank
   * gets an {@link AbortedException} that names it. Idempotent.
   *
   * <p>The last rank of this process to leave gives back what devices hold for its ranks, but
   * windows and pools, which are closed on their own.
   *
   * @throws MismatchException if ranks disagreed in an operation that returned normally here, and
   *     no call has said so; the rank has left all the same. Ranks that left before this one may
   *     not have known: where ranks disagree, the last to leave is told
   */
  @Override
  public void close() {
    membership.closed();
    try {
      endpoint.close();
    } finally {
      membership.release();
    }
    Reference.reachabilityFence(this);
  }

  @Override
  public String toString() {
    return "rank " + rank() + " of " + size();
  }
}
