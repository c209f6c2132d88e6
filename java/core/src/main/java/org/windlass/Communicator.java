// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Supplier;
import org.windlass.internal.Endpoint;
import org.windlass.internal.Leaks;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;

/**
 * One rank's part in a communicator: the ranks that met, their deadline and their one failure
 * record.
 *
 * <p>Operations are collective: every rank calls the same ones in the same order. One thread at a
 * time calls operations on a rank; {@link #abort}, {@link #close} and the queries are legal from
 * any thread at any time. When an operation returns, its outputs are complete and its inputs may be
 * changed or freed.
 *
 * <p>An operation takes no longer than its deadline. After {@link TimeoutException}, {@link
 * PeerLostException}, {@link AbortedException}, {@link MismatchException} or {@link
 * DeviceException} the communicator is dead: every further operation throws the same. A thread that
 * is interrupted while an operation blocks leaves it with an AbortedException, its interrupt flag
 * set. An operation called from a virtual or ForkJoin thread runs on a platform thread of the
 * communicator's own.
 */
public final class Communicator implements AutoCloseable {
  private final Endpoint endpoint;
  private final Duration deadline;
  private final Membership membership;

  /** Keeps the group reachable, so that it isn't taken for a leak. */
  private final LocalGroup group;

  /**
   * Takes over a native handle.
   *
   * @param group the group that the handle belongs to and is closed with; null if it stands alone
   */
  Communicator(long handle, Duration deadline, LocalGroup group) {
    this.endpoint = new Endpoint(handle);
    this.deadline = deadline;
    this.group = group;
    String what =
        group != null
            ? null
            : "Communicator of rank " + endpoint.rank + " of " + endpoint.size + " (from split)";
    this.membership = new Membership(what, endpoint);
    Leaks.watch(this, membership);
  }

  /** {@code ranks} ranks that are threads of this process; see {@link LocalGroup}. */
  public static LocalGroup local(int ranks) {
    return new LocalGroup(ranks, CommunicatorOptions.defaults());
  }

  /** {@code ranks} ranks that are threads of this process; see {@link LocalGroup}. */
  public static LocalGroup local(int ranks, CommunicatorOptions options) {
    return new LocalGroup(ranks, options);
  }

  public int rank() {
    return endpoint.rank;
  }

  public int size() {
    return endpoint.size;
  }

  /** How long an operation may take when its call names no deadline. */
  public Duration deadline() {
    return deadline;
  }

  public Target target() {
    return Target.loaded();
  }

  /** Returns once every rank has called it. */
  public void barrier() {
    barrier(Deadlines.DEFAULT);
  }

  /** {@link #barrier()} with a deadline of its own. */
  public void barrier(Duration operationDeadline) {
    barrier(Deadlines.nanos(operationDeadline));
  }

  private void barrier(long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> barrier(deadlineNs));
      return;
    }
    Endpoint own = endpoint;
    own.begin(thread);
    try {
      int code = Native.wl_barrier(own.handle, deadlineNs, own.error);
      if (code != Native.WL_OK) {
        throw own.settle(code, null, null);
      }
      own.end();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Sends block {@code r} of {@code in} to rank {@code r}, and puts the block from rank {@code s}
   * at block {@code s} of {@code out}. Both are contiguous, of one dtype and one number of
   * elements, which is a multiple of {@link #size()}; a block is their first to last {@code numel /
   * size} elements in order. They don't overlap.
   */
  public void allToAll(Tensor in, Tensor out) {
    allToAll(in, out, Native.WL_AUTO, Deadlines.DEFAULT);
  }

  /** {@link #allToAll(Tensor, Tensor)} by {@link Algorithm#PUSH} or {@link Algorithm#PULL}. */
  public void allToAll(Tensor in, Tensor out, Algorithm algorithm) {
    allToAll(in, out, code("allToAll", algorithm), Deadlines.DEFAULT);
  }

  /** {@link #allToAll(Tensor, Tensor)} with a deadline of its own. */
  public void allToAll(Tensor in, Tensor out, Algorithm algorithm, Duration operationDeadline) {
    allToAll(in, out, code("allToAll", algorithm), Deadlines.nanos(operationDeadline));
  }

  private void allToAll(Tensor in, Tensor out, int algorithm, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> allToAll(in, out, algorithm, deadlineNs));
      return;
    }
    Arguments.allToAll(in, out, endpoint.size);
    long count = in.numel / endpoint.size;
    run(thread, Native.WL_OP_ALL_TO_ALL, in, out, count, 0, 0, algorithm, deadlineNs);
  }

  /**
   * Makes {@code tensor} on every rank what it is on {@code root}. Contiguous; one dtype and size
   * on all ranks.
   */
  public void broadcast(Tensor tensor, int root) {
    broadcast(tensor, tensor, root, Native.WL_AUTO, Deadlines.DEFAULT);
  }

  /**
   * Makes {@code out} on every rank what {@code in} is on {@code root}. Contiguous; one dtype and
   * size on all ranks.
   *
   * @param in read on the root alone; elsewhere it may be null. On the root it may be {@code out};
   *     they don't overlap otherwise
   */
  public void broadcast(Tensor in, Tensor out, int root) {
    broadcast(in, out, root, Native.WL_AUTO, Deadlines.DEFAULT);
  }

  /**
   * {@link #broadcast(Tensor, Tensor, int)} by {@link Algorithm#STAGED}, with a deadline of its
   * own.
   */
  public void broadcast(
      Tensor in, Tensor out, int root, Algorithm algorithm, Duration operationDeadline) {
    broadcast(in, out, root, code("broadcast", algorithm), Deadlines.nanos(operationDeadline));
  }

  private void broadcast(Tensor in, Tensor out, int root, int algorithm, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> broadcast(in, out, root, algorithm, deadlineNs));
      return;
    }
    Arguments.broadcast(in, out, root, endpoint.rank, endpoint.size);
    Tensor from = endpoint.rank == root ? in : out;
    run(thread, Native.WL_OP_BROADCAST, from, out, out.numel, 0, root, algorithm, deadlineNs);
  }

  /**
   * Puts {@code in} of rank {@code s} at part {@code s} of {@code out} on every rank: {@code out}
   * has {@link #size()} times as many elements. In place, {@code in} is this rank's own part of
   * {@code out}; they don't overlap otherwise.
   */
  public void allGather(Tensor in, Tensor out) {
    allGather(in, out, Deadlines.DEFAULT);
  }

  /** {@link #allGather(Tensor, Tensor)} with a deadline of its own. */
  public void allGather(Tensor in, Tensor out, Duration operationDeadline) {
    allGather(in, out, Deadlines.nanos(operationDeadline));
  }

  private void allGather(Tensor in, Tensor out, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> allGather(in, out, deadlineNs));
      return;
    }
    Arguments.parts("allGather", in, "in", out, "out", out, endpoint.rank, endpoint.size);
    run(thread, Native.WL_OP_ALL_GATHER, in, out, in.numel, 0, 0, 0, deadlineNs);
  }

  /**
   * Reduces {@code in} of all ranks and puts part {@code r} of the result into {@code out} of rank
   * {@code r}: {@code in} has {@link #size()} times as many elements. In place, {@code out} is this
   * rank's own part of {@code in}; they don't overlap otherwise.
   *
   * <p>Ranks are folded in ascending order, f16, bf16 and f8 in f32, and rounded once; integers
   * wrap; max and min give NaN where any rank has it. So the bits are the same in every run.
   */
  public void reduceScatter(Tensor in, Tensor out, ReduceOp op) {
    reduceScatter(in, out, op, Deadlines.DEFAULT);
  }

  /** {@link #reduceScatter(Tensor, Tensor, ReduceOp)} with a deadline of its own. */
  public void reduceScatter(Tensor in, Tensor out, ReduceOp op, Duration operationDeadline) {
    reduceScatter(in, out, op, Deadlines.nanos(operationDeadline));
  }

  private void reduceScatter(Tensor in, Tensor out, ReduceOp op, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> reduceScatter(in, out, op, deadlineNs));
      return;
    }
    Arguments.parts("reduceScatter", out, "out", in, "in", out, endpoint.rank, endpoint.size);
    Arguments.reducible("reduceScatter", in, op);
    run(thread, Native.WL_OP_REDUCE_SCATTER, in, out, out.numel, op.code(), 0, 0, deadlineNs);
  }

  /** Makes {@code tensor} on every rank the reduction of it over all ranks. */
  public void allReduce(Tensor tensor, ReduceOp op) {
    allReduce(tensor, tensor, op, Native.WL_AUTO, Deadlines.DEFAULT);
  }

  /**
   * Makes {@code out} on every rank the reduction of {@code in} over all ranks. In place, they are
   * one tensor; they don't overlap otherwise. The order is that of {@link #reduceScatter}.
   */
  public void allReduce(Tensor in, Tensor out, ReduceOp op) {
    allReduce(in, out, op, Native.WL_AUTO, Deadlines.DEFAULT);
  }

  /**
   * {@link #allReduce(Tensor, Tensor, ReduceOp)} by one algorithm. {@link Algorithm#RING} and
   * {@link Algorithm#BIDIRECTIONAL_RING} add in ring order and round at each rank; {@link
   * Algorithm#ONE_PHASE} is in place for small tensors alone.
   */
  public void allReduce(Tensor in, Tensor out, ReduceOp op, Algorithm algorithm) {
    allReduce(in, out, op, code("allReduce", algorithm), Deadlines.DEFAULT);
  }

  /** {@link #allReduce(Tensor, Tensor, ReduceOp, Algorithm)} with a deadline of its own. */
  public void allReduce(
      Tensor in, Tensor out, ReduceOp op, Algorithm algorithm, Duration operationDeadline) {
    allReduce(in, out, op, code("allReduce", algorithm), Deadlines.nanos(operationDeadline));
  }

  private void allReduce(Tensor in, Tensor out, ReduceOp op, int algorithm, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> allReduce(in, out, op, algorithm, deadlineNs));
      return;
    }
    Arguments.alike("allReduce", in, out);
    Arguments.reducible("allReduce", in, op);
    run(thread, Native.WL_OP_ALL_REDUCE, in, out, in.numel, op.code(), 0, algorithm, deadlineNs);
  }

  /**
   * Puts part {@code r} of {@code in} on {@code root} into {@code out} of rank {@code r}.
   *
   * @param in {@link #size()} times as many elements as {@code out}; read on the root alone,
   *     elsewhere it may be null. In place, the root's {@code out} is its own part of {@code in}
   */
  public void scatter(Tensor in, Tensor out, int root) {
    scatter(in, out, root, Deadlines.DEFAULT);
  }

  /** {@link #scatter(Tensor, Tensor, int)} with a deadline of its own. */
  public void scatter(Tensor in, Tensor out, int root, Duration operationDeadline) {
    scatter(in, out, root, Deadlines.nanos(operationDeadline));
  }

  private void scatter(Tensor in, Tensor out, int root, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> scatter(in, out, root, deadlineNs));
      return;
    }
    Arguments.root("scatter", root, endpoint.size);
    boolean isRoot = endpoint.rank == root;
    if (isRoot) {
      Arguments.parts("scatter", out, "out", in, "in", out, root, endpoint.size);
    } else {
      Arguments.single("scatter", "out", out, true);
    }
    Tensor from = isRoot ? in : null;
    run(thread, Native.WL_OP_SCATTER, from, out, out.numel, 0, root, 0, deadlineNs);
  }

  /**
   * Puts {@code in} of rank {@code s} at part {@code s} of {@code out} on {@code root}.
   *
   * @param out {@link #size()} times as many elements as {@code in}; written on the root alone,
   *     elsewhere it may be null. In place, the root's {@code in} is its own part of {@code out}
   */
  public void gather(Tensor in, Tensor out, int root) {
    gather(in, out, root, Deadlines.DEFAULT);
  }

  /** {@link #gather(Tensor, Tensor, int)} with a deadline of its own. */
  public void gather(Tensor in, Tensor out, int root, Duration operationDeadline) {
    gather(in, out, root, Deadlines.nanos(operationDeadline));
  }

  private void gather(Tensor in, Tensor out, int root, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> gather(in, out, root, deadlineNs));
      return;
    }
    Arguments.root("gather", root, endpoint.size);
    boolean isRoot = endpoint.rank == root;
    if (isRoot) {
      Arguments.parts("gather", in, "in", out, "out", out, root, endpoint.size);
    } else {
      Arguments.single("gather", "in", in, false);
    }
    Tensor to = isRoot ? out : null;
    run(thread, Native.WL_OP_GATHER, in, to, in.numel, 0, root, 0, deadlineNs);
  }

  /**
   * Makes {@code out} on {@code root} the reduction of {@code in} over all ranks, in the order of
   * {@link #reduceScatter}.
   *
   * @param out written on the root alone; elsewhere it may be null. In place, it is {@code in}
   */
  public void reduce(Tensor in, Tensor out, ReduceOp op, int root) {
    reduce(in, out, op, root, Deadlines.DEFAULT);
  }

  /** {@link #reduce(Tensor, Tensor, ReduceOp, int)} with a deadline of its own. */
  public void reduce(Tensor in, Tensor out, ReduceOp op, int root, Duration operationDeadline) {
    reduce(in, out, op, root, Deadlines.nanos(operationDeadline));
  }

  private void reduce(Tensor in, Tensor out, ReduceOp op, int root, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      handOff(() -> reduce(in, out, op, root, deadlineNs));
      return;
    }
    Arguments.root("reduce", root, endpoint.size);
    boolean isRoot = endpoint.rank == root;
    if (isRoot) {
      Arguments.alike("reduce", in, out);
    } else {
      Arguments.single("reduce", "in", in, false);
    }
    Arguments.reducible("reduce", in, op);
    Tensor to = isRoot ? out : null;
    run(thread, Native.WL_OP_REDUCE, in, to, in.numel, op.code(), root, 0, deadlineNs);
  }

  private void run(
      Thread thread,
      int operation,
      Tensor in,
      Tensor out,
      long count,
      int op,
      int root,
      int algorithm,
      long deadlineNs) {
    Collective.run(
        endpoint, thread, operation, in, out, count, op, root, algorithm, deadlineNs);
    Reference.reachabilityFence(this);
  }

  /** Collective: {@code bytes} bytes on every rank, zeroed, aligned to 4,096. */
  public Window window(long bytes) {
    return window(bytes, Deadlines.DEFAULT);
  }

  /** {@link #window(long)} with a deadline of its own. */
  public Window window(long bytes, Duration operationDeadline) {
    return window(bytes, Deadlines.nanos(operationDeadline));
  }

  private Window window(long bytes, long deadlineNs) {
    if (bytes < 0) {
      throw new InvalidArgumentException("window: bytes is " + bytes + "; it must be 0 or more");
    }
    return new Window(
        this,
        endpoint,
        call(
            (out, error) ->
                Native.wl_window_create(endpoint.handle, bytes, deadlineNs, out, error)),
        bytes);
  }

  /**
   * Collective: ranks of one color meet in a new communicator, where they are ordered by key, then
   * by rank here. It has a control block and a failure record of its own, and is closed on its own.
   *
   * @param color 0 or more; a rank with a negative color takes part but joins nothing
   * @return null for a negative color
   */
  public Communicator split(int color, int key) {
    return split(color, key, Deadlines.DEFAULT);
  }

  /** {@link #split(int, int)} with a deadline of its own. */
  public Communicator split(int color, int key, Duration operationDeadline) {
    return split(color, key, Deadlines.nanos(operationDeadline));
  }

  private Communicator split(int color, int key, long deadlineNs) {
    long handle =
        call(
            (out, error) ->
                Native.wl_comm_split(endpoint.handle, color, key, deadlineNs, out, error));
    if (handle == 0) {
      return null;
    }
    Communicator child = new Communicator(handle, deadline, null);
    membership.joined(child);
    return child;
  }

  /** A batch of tensors to redistribute among the ranks of this communicator. */
  public Batch batch() {
    return new Batch(this);
  }

  /** A native call with an out-parameter of 8 bytes. */
  @FunctionalInterface
  interface NativeCall {
    int call(long out, long error);
  }

  /** Makes a collective call that names no memory of the caller's; its out-parameter. */
  long call(NativeCall nativeCall) {
    Thread thread = Thread.currentThread();
    if (Endpoint.mustHandOff(thread)) {
      return endpoint.handOff(() -> call(nativeCall));
    }
    endpoint.begin(thread);
    try (Scratch scratch = Scratch.take()) {
      int code = nativeCall.call(scratch.out(), endpoint.error);
      if (code != Native.WL_OK) {
        throw endpoint.settle(code, null, null);
      }
      endpoint.end();
      return scratch.outValue();
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  void handOff(Runnable call) {
    Supplier<Void> supplier =
        () -> {
          call.run();
          return null;
        };
    endpoint.handOff(supplier);
    Reference.reachabilityFence(this);
  }

  Endpoint endpoint() {
    return endpoint;
  }

  private static int code(String what, Algorithm algorithm) {
    if (algorithm == null) {
      throw new InvalidArgumentException(what + ": algorithm is null");
    }
    return algorithm.code();
  }

  /**
   * Ends the communicator on every rank: those inside an operation, or at their next one, get an
   * {@link AbortedException} with {@code reason}. The first failure stands; a later one changes
   * nothing.
   */
  public void abort(String reason) {
    endpoint.abort(reason == null ? "no reason given" : reason);
    Reference.reachabilityFence(this);
  }

  /** Aborts this communicator and those that this rank is in by {@link #split}. */
  void abortAll(String reason) {
    abort(reason);
    membership.children().forEach(child -> child.abortAll(reason));
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
   * Leaves the communicator. An operation in progress on this rank ends with {@link
   * ClosedException} first, as does every later one; a peer that waits for this rank gets an {@link
   * AbortedException} that names it. Idempotent.
   */
  @Override
  public void close() {
    membership.closed();
    endpoint.close();
    Reference.reachabilityFence(this);
  }

  @Override
  public String toString() {
    return "rank " + rank() + " of " + size();
  }
}
