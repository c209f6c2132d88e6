// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
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
import org.windlass.internal.Natives;
import org.windlass.internal.PeerMemory;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.EndpointOwner;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.rendezvous.OwnStore;
import org.windlass.internal.report.RankLook;
import org.windlass.kernel.Target;
import org.windlass.launch.Rendezvous;
import org.windlass.report.OperationTotals;
import org.windlass.report.Report;

/**
 * Connects one rank to the ranks that joined the same communicator. If it fails for one rank, it
 * fails for all of them.
 *
 * <p>Operations are collective: every rank calls the same operations in the same order. The
 * exception is the operations of a {@link Window}, which one rank calls without the others. Only
 * one thread at a time may call operations on a rank. {@link #abort}, {@link #close} and the
 * queries are legal from any thread at any time. When an operation returns, its outputs are
 * complete and its inputs may be changed or freed.
 *
 * <p>An operation takes no longer than its deadline. The communicator is dead after {@link
 * DeadlineExceededException}, {@link PeerLostException}, {@link AbortedException}, {@link
 * MismatchException} or {@link DeviceException}. Every further operation then throws the same
 * exception, and {@link #shrink} makes a new communicator of the live ranks. If a thread is
 * interrupted in a blocking operation, the operation throws an AbortedException, and the thread's
 * interrupt flag is set.
 *
 * <p>Before a rank uses data of a peer, it checks that the peer called the same operation. A rank
 * that waits for no peer, such as the root of a small broadcast, may return normally despite a
 * mismatch. In this case, the next operation or {@link #close} throws the MismatchException.
 *
 * <p>An operation runs on its caller's thread. A platform thread of the communicator runs
 * operations submitted by {@link #runAsync}. It also runs operations called from a virtual or
 * ForkJoin thread, or called while others are queued.
 */
@SuppressWarnings("exports") // used only by packages of Windlass
public final class Communicator extends Collectives implements AutoCloseable, EndpointOwner {
  private final Duration deadline;
  private final Membership membership;

  private final @Nullable LocalGroup group;

  /** Communicator from which this one was made. Its {@link #abortAll} aborts this one too. */
  @SuppressWarnings("unused")
  private @Nullable Communicator origin;

  /**
   * Takes ownership of a {@code wl_comm_t*}.
   *
   * @param group the group that closes the communicator; null if there is none
   * @param maker the call that made it, for the report of a communicator that was never closed
   */
  Communicator(long handle, Duration deadline, @Nullable LocalGroup group, String maker) {
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
   * Makes a communicator that belongs to no group. For packages of Windlass.
   *
   * @param handle a {@code wl_comm_t*}, which the communicator takes over
   * @param deadline the deadline of calls that do not specify one
   * @param maker the call that made it, for the report of a communicator that was never closed
   * @hidden
   */
  public static Communicator of(long handle, Duration deadline, String maker) {
    return of(handle, deadline, null, maker);
  }

  /**
   * Returns the native communicator with the state of its calls. For packages of Windlass.
   *
   * @hidden
   */
  @Override
  public Endpoint endpoint() {
    return endpoint;
  }

  /** Calls {@link #fromEnvironment(CommunicatorOptions, Duration)} with defaults and 60 seconds. */
  public static Communicator fromEnvironment() {
    return fromEnvironment(CommunicatorOptions.defaults(), Duration.ofSeconds(60));
  }

  /**
   * Collective. Joins the other ranks that a launcher started, each in its own process. The
   * variables in {@link org.windlass.launch.LaunchEnvironment} give this process's rank. {@link
   * org.windlass.launch.LaunchEnvironment#rendezvous} gives the address where ranks find each
   * other.
   *
   * <p>If all ranks are on one host, peers access the tensors of a {@link Window} and of a {@link
   * MemoryPool} directly. Other tensors are copied from one process to another. If ranks are on
   * several hosts, collectives and transfers copy all data.
   *
   * @param options the same on all ranks; cores 0 means the cores that all ranks together may use
   * @param deadline time limit for all ranks to join
   * @throws DeadlineExceededException if some ranks have not joined; the message names them
   * @throws InvalidArgumentException if the environment has no variables of a launcher, or wrong
   *     ones
   * @throws ResourceException if rank 0 can't announce the rendezvous, or has announced it for
   *     another job
   * @throws MismatchException if ranks run different versions of Windlass, or pass different
   *     options
   * @throws UnsupportedException if ranks are on several hosts, and one of these has no UCX or none
   *     of the networks that its settings name
   */
  public static Communicator fromEnvironment(CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(deadline, "deadline");
    return new EnvironmentStart(System.getenv(), 1, options, deadline).join();
  }

  /**
   * Collective. Joins the other ranks through the framework that started them. Each rank calls it
   * on its own thread, with its own {@link Rendezvous}. Ranks of one process share memory. Ranks of
   * several processes exchange data as in {@link #fromEnvironment(CommunicatorOptions, Duration)}.
   *
   * @param rendezvous called at most four times; another start of the same ranks waits until this
   *     one is over
   * @param options the same on all ranks; cores 0 means the cores that all ranks together may use
   * @param deadline time limit for all ranks to join
   * @throws DeadlineExceededException if some ranks have not joined
   * @throws MismatchException if ranks run different versions of Windlass, pass different options,
   *     or send messages that are not part of a start
   * @throws UnsupportedException if ranks are on several hosts, and one of these has no UCX or none
   *     of the networks that its settings name. It is also thrown if ranks of one process use
   *     different class loaders, or the native library does not load for one of them
   */
  public static Communicator meet(
      Rendezvous rendezvous, CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(rendezvous, "rendezvous");
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(deadline, "deadline");
    long handle = RendezvousStart.join(rendezvous, options, deadline);
    return of(handle, options.deadline(), null, "meet");
  }

  /** Takes ownership of a native communicator, and closes it if the constructor throws. */
  static Communicator of(long handle, Duration deadline, @Nullable LocalGroup group, String maker) {
    try {
      return new Communicator(handle, deadline, group, maker);
    } catch (Throwable e) {
      // The handle is not freed: the leak watcher may already refer to it.
      Native.wl_comm_close(handle, 0);
      throw e;
    }
  }

  /** Returns the time limit of an operation whose call specifies no deadline. */
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

  /** Makes a window of {@code bytes} bytes on every rank, zeroed, aligned to 4,096. Collective. */
  public Window window(long bytes) {
    return MemoryCalls.window(this, bytes, Deadline.DEFAULT);
  }

  /** Runs {@link #window(long)} with a deadline for the call. */
  public Window window(long bytes, Duration deadline) {
    return MemoryCalls.window(this, bytes, Deadline.nanos(deadline));
  }

  /**
   * Collective. Makes a window of {@code bytes} bytes in the memory of every rank's device, zeroed.
   * If all ranks share a device, collectives use the window's tensors without a copy; otherwise
   * they copy these tensors. Calls such as {@link Window#put} move elements between these tensors
   * and tensors of the host or of a device.
   *
   * @throws UnsupportedException if the target, unlike {@code cuda}, offers callers no tensors on
   *     its devices. It is also thrown if devices can't access each other, or if ranks are in
   *     several processes, since processes can't share a device's memory
   * @throws ResourceException if a device has too little memory; the message has the requested and
   *     the free size
   */
  public Window deviceWindow(long bytes) {
    return MemoryCalls.deviceWindow(this, bytes, Deadline.DEFAULT);
  }

  /** Runs {@link #deviceWindow(long)} with a deadline for the call. */
  public Window deviceWindow(long bytes, Duration deadline) {
    return MemoryCalls.deviceWindow(this, bytes, Deadline.nanos(deadline));
  }

  /**
   * Collective. Makes a pool of {@code bytes} bytes on every rank, in whole pages. Each rank
   * allocates tensors from its part, without calls by the other ranks. The processes of all ranks
   * on its host map that part. The pool uses memory only for allocated tensors, so it may be as
   * large as the tensors' maximum total size.
   *
   * @param bytes 1 or more
   */
  public MemoryPool memoryPool(long bytes) {
    return MemoryCalls.memoryPool(this, bytes, Deadline.DEFAULT);
  }

  /** Runs {@link #memoryPool(long)} with a deadline for the call. */
  public MemoryPool memoryPool(long bytes, Duration deadline) {
    return MemoryCalls.memoryPool(this, bytes, Deadline.nanos(deadline));
  }

  /**
   * Collective. Ranks of the same color form a new communicator. In the new communicator, ranks are
   * ordered by key, then by their rank in this communicator. The new communicator fails and is
   * closed independently of this one.
   *
   * @param color 0 or more; a rank with a negative color takes part but joins nothing
   * @return null for a negative color
   */
  public @Nullable Communicator split(int color, int key) {
    return split(color, key, Deadline.DEFAULT);
  }

  /** Runs {@link #split(int, int)} with a deadline for the call. */
  public @Nullable Communicator split(int color, int key, Duration deadline) {
    return split(color, key, Deadline.nanos(deadline));
  }

  private @Nullable Communicator split(int color, int key, long deadlineNs) {
    return join(
        "from split",
        (out, error) -> Native.wl_comm_split(endpoint.handle, color, key, deadlineNs, out, error));
  }

  /**
   * Collective. The listed ranks form a new communicator, where they are ranks 0, 1, ... in the
   * order of the list. Every rank calls it with the same list, including ranks that are not listed.
   * The lists of several calls may overlap. Each new communicator fails and is closed
   * independently.
   *
   * @return null on a rank that isn't listed
   */
  public @Nullable Communicator subgroup(int... ranks) {
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
   * Returns the rank in the parent for each rank of this communicator, in order. The parent is the
   * communicator from which {@link #subgroup}, {@link #split} or {@link #shrink} made this one.
   * Empty if there is no parent. Legal from any thread at any time.
   */
  public List<Integer> parentRanks() {
    try {
      return RankLook.former(endpoint);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Converts a rank of the parent to the rank of this communicator. See {@link #parentRanks}. Legal
   * from any thread at any time.
   *
   * @throws InvalidArgumentException if {@code parentRank} is not in this communicator, or this
   *     communicator has no parent; the message lists the members
   */
  public int rankFromParent(int parentRank) {
    List<Integer> members = parentRanks();
    int rank = members.indexOf(parentRank);
    if (rank < 0) {
      throw new InvalidArgumentException(
          members.isEmpty()
              ? "rankFromParent: " + this + " was made from no other communicator"
              : "rankFromParent: rank " + parentRank + " is not a member; the members are ranks "
                  + members);
    }
    return rank;
  }

  /**
   * Makes a new communicator of the live ranks after a failure. Ranks keep their order. Every live
   * rank calls it, whichever exception it got. The call does not wait for ranks that died or have
   * closed the communicator. It continues once all other live ranks have called it, or once the
   * deadline of one of them has passed. So a stopped process delays the call until the deadline,
   * but a dead process does not. If a rank dies during the call or can't take part, the other ranks
   * agree again without that rank. This may take some seconds beyond the deadline.
   *
   * <p>Across hosts, if another failure occurs during the call, some ranks may get a new
   * communicator that has already failed. Its next call throws {@link PeerLostException} or {@link
   * AbortedException}; call shrink on it. Hosts that can't reach each other continue separately,
   * each side with its own communicator. If only one side may continue, choose the one whose {@link
   * #size} is more than half of this communicator's.
   *
   * <p>The new communicator has no windows. If you need windows, make new ones. This communicator
   * stays dead. Close this communicator and the objects in its windows once you no longer need
   * them. After {@link DeadlineExceededException} the call may be repeated.
   *
   * @param deadline time limit for ranks that neither called nor died. It must be the same on all
   *     ranks. It must be longer than the deadline of an operation, so that all ranks have learned
   *     of the failure before this limit
   * @throws AbortedException if the others continued without this rank, which had not called by
   *     their deadline. Every later call on this communicator throws the same exception, and writes
   *     of this rank no longer reach the other ranks
   * @throws InvalidArgumentException if the communicator is not dead ({@link #abort} ends it), or
   *     this rank has already shrunk it
   * @throws ResourceException if this process has too little memory or too few files; the other
   *     ranks continue
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
   * Makes a communicator by {@code nativeCall}. Returns null if {@code nativeCall} returns no
   * handle.
   */
  @Nullable Communicator join(String maker, Natives.Call nativeCall) {
    long handle = call(nativeCall);
    return handle == 0 ? null : adopt(maker, handle);
  }

  private Communicator adopt(String maker, long handle) {
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

  void keep(@Nullable OwnStore other) {
    membership.keep(other);
  }

  long call(Natives.Call nativeCall) {
    try {
      return endpoint.call(nativeCall);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Ends the communicator on every rank. Each rank's current or next operation throws an {@link
   * AbortedException} with {@code reason}. After another failure, the call has no effect.
   *
   * @param reason may be null, as an exception's message may
   */
  public void abort(@Nullable String reason) {
    endpoint.abortAsAsked(reason == null ? "no reason given" : reason);
    Reference.reachabilityFence(this);
  }

  /**
   * Calls {@link #abort} on this communicator and on every one that this rank made from it, for
   * example by {@link #split}. Call it on a rank that ends with an error, since peers may wait in
   * any of these communicators.
   */
  public void abortAll(@Nullable String reason) {
    abort(reason);
    children().forEach(child -> child.abortAll(reason));
  }

  List<Communicator> children() {
    return membership.children();
  }

  /** Returns the reason why the communicator is dead. Empty while it is alive. */
  public Optional<WindlassException> failure() {
    try {
      return Optional.ofNullable(endpoint.failure());
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Reports the state of every rank: its current or last operation, the time when that began, the
   * ranks that it waits for, and its earlier operations. Legal from any thread at any time, also
   * during operations and after a failure. The call delays no rank.
   */
  public Report report() {
    try {
      return Report.of(RankLook.all(endpoint), endpoint.failure(), PeerMemory.of(endpoint.handle));
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Returns totals for each kind of operation, over all operations that this rank has completed.
   * They include operations that are too old for {@link #report}. They do not include asynchronous
   * messages. Legal from any thread at any time, like {@link #report}.
   */
  public List<OperationTotals> totals() {
    try {
      return OperationTotals.of(endpoint.handle);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Leaves the communicator. Current, queued and later operations on this rank throw {@link
   * ClosedException}. A peer that waits for this rank gets an {@link AbortedException} that names
   * it. Idempotent.
   *
   * <p>The last rank of this process to leave releases the memory on devices of all its ranks.
   * Windows and pools are closed separately.
   *
   * @throws MismatchException if ranks disagreed about an operation that returned normally here,
   *     and no call has thrown it yet. This rank has left nevertheless. Ranks that left earlier may
   *     not have detected the disagreement, but the last rank to leave detects it
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
