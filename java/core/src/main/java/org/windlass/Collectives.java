// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.RankLists;
import org.windlass.kernel.Kernel;

/**
 * The operations of one rank under one deadline: a {@link Communicator} with its own, or what
 * {@link Communicator#withDeadline} gives.
 *
 * <p>Tensors are contiguous, and of one dtype on all ranks, and of one size unless lists of counts
 * say otherwise: those hold elements, one value for each rank, and may be changed once the call has
 * returned. Tensors may be plain or distributed. Where an operation works in place it says how;
 * tensors don't overlap otherwise.
 *
 * <p>Reductions fold ranks in ascending order, f16, bf16 and f8 in f32, and round once; integers
 * wrap; max and min give NaN where any rank has it. So the bits are the same in every run.
 */
public sealed class Collectives permits Communicator {
  final Endpoint endpoint;
  private final long deadlineNs;

  /** Keeps the native handle alive while an operation runs. */
  private final Object owner;

  /**
   * @param owner what the endpoint lives as long as; null if that is this object
   */
  Collectives(Endpoint endpoint, long deadlineNs, Object owner) {
    this.endpoint = endpoint;
    this.deadlineNs = deadlineNs;
    this.owner = owner == null ? this : owner;
  }

  /** This rank's number, from 0. */
  public final int rank() {
    return endpoint.rank;
  }

  /** Number of ranks. */
  public final int size() {
    return endpoint.size;
  }

  /** Returns once every rank has called it. */
  public final void barrier() {
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(this::barrier);
      return;
    }
    Endpoint own = endpoint;
    own.begin(thread);
    try {
      own.call.of(Native.WL_OP_BARRIER, 0, deadlineNs);
      int code = own.submit();
      if (code != Native.WL_OK) {
        throw own.settle(code, null, null);
      }
      own.end();
    } finally {
      Reference.reachabilityFence(owner);
    }
  }

  /**
   * Sends part {@code r} of {@code in} to rank {@code r}, and puts what rank {@code s} sends here
   * at part {@code s} of {@code out}. A tensor's parts are {@link #size()} equal runs of its
   * elements in order.
   */
  public final void allToAll(Tensor in, Tensor out) {
    allToAll(in, out, Algorithm.AUTO);
  }

  /** {@link #allToAll(Tensor, Tensor)} by {@link Algorithm#PUSH} or {@link Algorithm#PULL}. */
  public final void allToAll(Tensor in, Tensor out, Algorithm algorithm) {
    int code = code(algorithm);
    run(Native.WL_OP_ALL_TO_ALL, given(in, "in"), given(out, "out"), 0, 0, 0, code);
  }

  /** Makes {@code tensor} on every rank what it is on {@code root}. */
  public final void broadcast(Tensor tensor, int root) {
    Arguments.inPlace(Native.WL_OP_BROADCAST, tensor);
    broadcast(tensor, tensor, root, Algorithm.AUTO);
  }

  /**
   * Makes {@code out} on every rank what {@code in} is on {@code root}.
   *
   * @param in read on the root alone; elsewhere it may be null. In place, the root's {@code in} is
   *     its {@code out}
   */
  public final void broadcast(Tensor in, Tensor out, int root) {
    broadcast(in, out, root, Algorithm.AUTO);
  }

  /** {@link #broadcast(Tensor, Tensor, int)} by {@link Algorithm#STAGED}. */
  public final void broadcast(Tensor in, Tensor out, int root, Algorithm algorithm) {
    int code = code(algorithm);
    Tensor from = rank() == root ? given(in, "in") : null;
    run(Native.WL_OP_BROADCAST, from, given(out, "out"), 0, root, 0, code);
  }

  /**
   * Puts {@code in} of rank {@code s} at part {@code s} of {@code out} on every rank: {@code out}
   * has {@link #size()} times as many elements. In place, {@code in} is this rank's own part of
   * {@code out}.
   */
  public final void allGather(Tensor in, Tensor out) {
    run(Native.WL_OP_ALL_GATHER, given(in, "in"), given(out, "out"), 0, 0, 0, 0);
  }

  /**
   * Joins {@code in} of all ranks along dimension {@code dim}, in rank order, and puts the result
   * into {@code out} on every rank. Dimension 0 is {@link #allGather(Tensor, Tensor)}. Dimension 1
   * puts matrices side by side: columns of rank {@code s} begin at column {@code s * columns}.
   *
   * @param in of one shape on every rank; not in place if {@code dim} is 1
   * @param out {@code in}'s shape, but {@link #size()} times as long in {@code dim}
   * @throws UnsupportedException if {@code dim} is neither 0 nor dimension 1 of a matrix
   */
  public final void allGather(Tensor in, Tensor out, int dim) {
    run(Arguments.alongDim(in, out, dim), in, out, 0, 0, dim == 0 ? 0 : in.shape[0], 0);
  }

  /**
   * Reduces {@code in} of all ranks and puts part {@code r} of the result into {@code out} of rank
   * {@code r}: {@code in} has {@link #size()} times as many elements. In place, {@code out} is this
   * rank's own part of {@code in}.
   */
  public final void reduceScatter(Tensor in, Tensor out, ReduceOp op) {
    run(Native.WL_OP_REDUCE_SCATTER, given(in, "in"), given(out, "out"), code(op), 0, 0, 0);
  }

  /** Makes {@code tensor} on every rank the reduction of it over all ranks. */
  public final void allReduce(Tensor tensor, ReduceOp op) {
    Arguments.inPlace(Native.WL_OP_ALL_REDUCE, tensor);
    allReduce(tensor, tensor, op, Algorithm.AUTO);
  }

  /**
   * Makes {@code out} on every rank the reduction of {@code in} over all ranks. In place, they are
   * one tensor.
   */
  public final void allReduce(Tensor in, Tensor out, ReduceOp op) {
    allReduce(in, out, op, Algorithm.AUTO);
  }

  /**
   * {@link #allReduce(Tensor, Tensor, ReduceOp)} by one algorithm. {@link Algorithm#RING} and
   * {@link Algorithm#BIDIRECTIONAL_RING} add in ring order and round at each rank; {@link
   * Algorithm#ONE_PHASE} is in place for small tensors alone.
   */
  public final void allReduce(Tensor in, Tensor out, ReduceOp op, Algorithm algorithm) {
    int code = code(algorithm);
    run(Native.WL_OP_ALL_REDUCE, given(in, "in"), given(out, "out"), code(op), 0, 0, code);
  }

  /**
   * Puts part {@code r} of {@code in} on {@code root} into {@code out} of rank {@code r}.
   *
   * @param in {@link #size()} times as many elements as {@code out}; read on the root alone,
   *     elsewhere it may be null. In place, the root's {@code out} is its own part of {@code in}
   */
  public final void scatter(Tensor in, Tensor out, int root) {
    Tensor from = rank() == root ? given(in, "in") : null;
    run(Native.WL_OP_SCATTER, from, given(out, "out"), 0, root, 0, 0);
  }

  /**
   * Puts {@code in} of rank {@code s} at part {@code s} of {@code out} on {@code root}.
   *
   * @param out {@link #size()} times as many elements as {@code in}; written on the root alone,
   *     elsewhere it may be null. In place, the root's {@code in} is its own part of {@code out}
   */
  public final void gather(Tensor in, Tensor out, int root) {
    Tensor to = rank() == root ? given(out, "out") : null;
    run(Native.WL_OP_GATHER, given(in, "in"), to, 0, root, 0, 0);
  }

  /**
   * Makes {@code out} on {@code root} the reduction of {@code in} over all ranks.
   *
   * @param out written on the root alone; elsewhere it may be null. In place, it is {@code in}
   */
  public final void reduce(Tensor in, Tensor out, ReduceOp op, int root) {
    Tensor to = rank() == root ? given(out, "out") : null;
    run(Native.WL_OP_REDUCE, given(in, "in"), to, code(op), root, 0, 0);
  }

  /**
   * Sends the next {@code sendCounts[r]} elements of {@code in} to rank {@code r}, for each rank in
   * turn, and puts the {@code receiveCounts[s]} that rank {@code s} sends here side by side into
   * {@code out}. Either tensor may hold more.
   *
   * @throws MismatchException on every rank if what one rank sends to a peer is not what that peer
   *     expects from it; nothing has come from there
   */
  public final void allToAllv(Tensor in, long[] sendCounts, Tensor out, long[] receiveCounts) {
    Arguments.buffers(Native.WL_OP_ALL_TO_ALL_V, given(in, "in"), given(out, "out"));
    Arguments.list("allToAllv", "sendCounts", sendCounts, size());
    Arguments.list("allToAllv", "receiveCounts", receiveCounts, size());
    exchange(in, sendCounts, null, out, receiveCounts, null);
  }

  /**
   * {@link #allToAllv(Tensor, long[], Tensor, long[])} where what goes to rank {@code r} begins at
   * element {@code sendOffsets[r]} of {@code in}, and what comes from rank {@code s} at element
   * {@code receiveOffsets[s]} of {@code out}. What comes from two ranks doesn't overlap.
   */
  public final void allToAllv(
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets) {
    Arguments.buffers(Native.WL_OP_ALL_TO_ALL_V, given(in, "in"), given(out, "out"));
    Arguments.list("allToAllv", "sendCounts", sendCounts, size());
    Arguments.list("allToAllv", "sendOffsets", sendOffsets, size());
    Arguments.list("allToAllv", "receiveCounts", receiveCounts, size());
    Arguments.list("allToAllv", "receiveOffsets", receiveOffsets, size());
    exchange(in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets);
  }

  /**
   * {@link #allToAllv(Tensor, long[], Tensor, long[])} where ranks don't know what they receive, as
   * when tokens go to experts.
   *
   * @param out large enough for all that comes. Where it is too small on any rank, every rank gets
   *     an {@link InvalidArgumentException} that names it and what it needs, and nothing has moved:
   *     the ranks may call again
   * @return how many elements came from each rank
   */
  public final long[] allToAllv(Tensor in, long[] sendCounts, Tensor out) {
    Arguments.buffers(Native.WL_OP_ALL_TO_ALL_V, given(in, "in"), given(out, "out"));
    Arguments.list("allToAllv", "sendCounts", sendCounts, size());
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return endpoint.handOff(() -> allToAllv(in, sendCounts, out));
    }
    long[] received =
        PartCollective.allToAllPacked(endpoint, thread, in, sendCounts, out, deadlineNs);
    Reference.reachabilityFence(owner);
    return received;
  }

  /**
   * Puts {@code in} of all ranks, in ascending rank, into {@code out} on every rank. In place,
   * {@code in} is this rank's own part of {@code out}.
   *
   * @param counts the elements of each rank's {@code in}; the same on every rank
   */
  public final void allGatherv(Tensor in, Tensor out, long[] counts) {
    Arguments.buffers(Native.WL_OP_ALL_GATHER_V, given(in, "in"), given(out, "out"));
    Arguments.list("allGatherv", "counts", counts, size());
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> allGatherv(in, out, counts));
      return;
    }
    PartCollective.allGather(endpoint, thread, in, out, counts, deadlineNs);
    PartCollective.run(endpoint, in, out);
    Reference.reachabilityFence(owner);
  }

  /**
   * Reduces {@code in} of all ranks and cuts the result, in ascending rank, into {@code out} of
   * each rank. In place, {@code out} is this rank's own part of {@code in}.
   *
   * @param counts the elements of each rank's {@code out}; the same on every rank
   */
  public final void reduceScatterv(Tensor in, Tensor out, long[] counts, ReduceOp op) {
    Arguments.buffers(Native.WL_OP_REDUCE_SCATTER_V, given(in, "in"), given(out, "out"));
    Arguments.list("reduceScatterv", "counts", counts, size());
    int code = code(op);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> reduceScatterv(in, out, counts, op));
      return;
    }
    PartCollective.reduceScatter(endpoint, thread, in, out, counts, code, deadlineNs);
    PartCollective.run(endpoint, in, out);
    Reference.reachabilityFence(owner);
  }

  private void exchange(
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets) {
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(
          () -> exchange(in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets));
      return;
    }
    RankLists lists = endpoint.lists();
    Collective.begin(endpoint, thread, Native.WL_OP_ALL_TO_ALL_V, in, out, deadlineNs)
        .inParts(lists.put(0, sendCounts), lists.put(1, sendOffsets))
        .outParts(lists.put(2, receiveCounts), lists.put(3, receiveOffsets))
        .received(0);
    PartCollective.run(endpoint, in, out);
    Reference.reachabilityFence(owner);
  }

  /**
   * Submits {@code call}, which calls operations of the object that it is given, and returns at
   * once: {@code comm.runAsync(c -> c.allReduce(gradients, ReduceOp.SUM))}.
   *
   * <p>Each rank has one thread for this, made on first use, which runs what was submitted in that
   * order. An operation called without {@code runAsync} while some are queued waits its turn behind
   * them. So ranks agree on the order within a communicator, and may differ in the order across
   * communicators. A deadline counts from when an operation begins, not while it is queued.
   *
   * <p>Tensors that {@code call} names are kept reachable; to close one before the operation is
   * over ends that with {@link ClosedException} if it has not begun. When the communicator is
   * closed or dies, what is queued ends with that failure and its {@code call} never runs.
   */
  public final Operation<Void> runAsync(Consumer<? super Collectives> call) {
    Objects.requireNonNull(call, "call");
    return supplyAsync(
        operations -> {
          call.accept(operations);
          return null;
        });
  }

  /**
   * Submits a call that has a result, as {@link #runAsync} does: {@code comm.supplyAsync(c ->
   * c.allToAllv(in, counts, out))}.
   */
  public final <T> Operation<T> supplyAsync(Function<? super Collectives, ? extends T> call) {
    Objects.requireNonNull(call, "call");
    return new Operation<>(endpoint.submit(() -> call.apply(this)));
  }

  /**
   * Runs {@code kernel} of a library, on every rank with the same dtypes, shapes and scalars. What it
   * does with its arguments is its author's to say; they are held against its table, {@link
   * Kernel#toString}, first.
   *
   * <p>The waits of a kernel end as all do, by the deadline, an abort or the loss of a peer. One that
   * doesn't come out of a phase holds up its rank: nothing ends it.
   *
   * @param arguments for each argument of the kernel a contiguous {@link Tensor} or, for a scalar,
   *     an {@link Integer} (i32), a {@link Long} (i64), a {@link Float} (f32) or a {@link Double}
   *     (f64). What is distributed is a {@link DistributedTensor}, at the same place of the same
   *     window on every rank
   * @throws InvalidArgumentException if an argument isn't what the kernel takes, or the kernel
   *     refuses them; nothing was sent
   * @throws MismatchException if ranks launch different kernels, or the same otherwise; nothing has
   *     moved between them
   * @throws UnsupportedException if ranks live on several hosts; the communicator lives
   */
  public final void launch(Kernel kernel, Object... arguments) {
    Objects.requireNonNull(kernel, "kernel");
    launchOf(kernel, Objects.requireNonNull(arguments, "arguments").clone());
  }

  private void launchOf(Kernel kernel, Object[] arguments) {
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> launchOf(kernel, arguments));
      return;
    }
    KernelLaunch.run(endpoint, thread, kernel, arguments, deadlineNs);
    Reference.reachabilityFence(owner);
  }

  /**
   * Returns this rank's collectives, enqueued on a CUDA stream instead of run: {@code
   * comm.onStream(stream).allReduce(gradients, ReduceOp.SUM)}. Keep the result if calls are
   * frequent.
   *
   * @param stream a {@code CUstream} or {@code cudaStream_t} of this rank's GPU, in its primary
   *     context; 0 and 1 are the legacy default stream. It lives until what is enqueued on it is over
   */
  public final StreamCollectives onStream(long stream) {
    return new StreamCollectives(endpoint, stream, deadlineNs, owner);
  }

  private void run(
      int operation, Tensor in, Tensor out, int op, int root, long rows, int algorithm) {
    Arguments.buffers(operation, in, out);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> run(operation, in, out, op, root, rows, algorithm));
      return;
    }
    Collective.begin(endpoint, thread, operation, in, out, deadlineNs)
        .equalParts(op, root, rows, algorithm);
    Collective.end(endpoint, endpoint.submit(), in, out);
    Reference.reachabilityFence(owner);
  }

  /** Runs {@code call} on a thread of the communicator's own. */
  final void handOff(Runnable call) {
    endpoint.handOff(
        () -> {
          call.run();
          return null;
        });
    Reference.reachabilityFence(owner);
  }

  private static Tensor given(Tensor tensor, String name) {
    return Objects.requireNonNull(tensor, name);
  }

  private static int code(ReduceOp op) {
    return Objects.requireNonNull(op, "op").code();
  }

  private static int code(Algorithm algorithm) {
    return Objects.requireNonNull(algorithm, "algorithm").code();
  }
}
