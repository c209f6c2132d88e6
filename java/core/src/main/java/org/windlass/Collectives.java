// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.RankLists;
import org.windlass.kernel.Kernel;

/**
 * Runs the operations of one rank under one deadline. A {@link Communicator} uses its own deadline.
 * {@link Communicator#withDeadline} returns an object with another deadline.
 *
 * <p>Tensors are contiguous and have the same dtype on all ranks. They have the same size too,
 * except in operations that take lists of counts. Such a list contains, for each rank, a number of
 * elements. The caller may change it once the call has returned. Tensors may be plain or
 * distributed. Tensors must not overlap, except if the operation documents how it works in place.
 *
 * <p>Reductions combine ranks in ascending order. They compute f16, bf16 and f8 in f32, and round
 * once. Integers wrap. Max and min return NaN if any rank has a NaN. So the result has the same
 * bits in every run.
 */
public sealed class Collectives extends ArrayCollectives
    permits Communicator, StreamCollectives.Enqueued {
  Collectives(Endpoint endpoint, long deadlineNs, @Nullable Object owner) {
    super(endpoint, deadlineNs, owner);
  }

  /** Blocks until every rank has called this method. */
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
   * Sends part {@code r} of {@code in} to rank {@code r}, and receives the part from rank {@code s}
   * into part {@code s} of {@code out}. A tensor consists of {@link #size()} parts. A part is a
   * range of consecutive elements, and all parts have the same number of them.
   */
  public final void allToAll(Tensor in, Tensor out) {
    allToAll(in, out, Algorithm.AUTO);
  }

  /**
   * Runs {@link #allToAll(Tensor, Tensor)} with a given algorithm.
   *
   * @param algorithm {@link Algorithm#AUTO}, {@link Algorithm#PUSH} or {@link Algorithm#PULL}
   * @throws InvalidArgumentException for another algorithm
   */
  public final void allToAll(Tensor in, Tensor out, Algorithm algorithm) {
    int code = code(algorithm);
    run(Native.WL_OP_ALL_TO_ALL, given(in, "in"), given(out, "out"), 0, 0, 0, 0, code);
  }

  /** Copies {@code tensor} of rank {@code root} to {@code tensor} of every rank. */
  public final void broadcast(Tensor tensor, int root) {
    Arguments.inPlace(Native.WL_OP_BROADCAST, tensor);
    broadcast(tensor, tensor, root, Algorithm.AUTO);
  }

  /**
   * Copies {@code in} of rank {@code root} to {@code out} of every rank.
   *
   * @param in read only on the root; may be null on other ranks. To broadcast in place, the root
   *     passes the same tensor as {@code in} and {@code out}
   */
  public final void broadcast(@Nullable Tensor in, Tensor out, int root) {
    broadcast(in, out, root, Algorithm.AUTO);
  }

  /**
   * Runs {@link #broadcast(Tensor, Tensor, int)} with a given algorithm.
   *
   * @param algorithm {@link Algorithm#AUTO} or {@link Algorithm#STAGED}
   * @throws InvalidArgumentException for another algorithm
   */
  public final void broadcast(@Nullable Tensor in, Tensor out, int root, Algorithm algorithm) {
    int code = code(algorithm);
    Tensor from = rank() == root ? given(in, "in") : null;
    run(Native.WL_OP_BROADCAST, from, given(out, "out"), 0, 0, root, 0, code);
  }

  /**
   * Copies {@code in} of rank {@code s} to part {@code s} of {@code out} on every rank. {@code out}
   * has {@link #size()} times as many elements as {@code in}. To gather in place, pass this rank's
   * own part of {@code out} as {@code in}.
   */
  public final void allGather(Tensor in, Tensor out) {
    run(Native.WL_OP_ALL_GATHER, given(in, "in"), given(out, "out"), 0, 0, 0, 0, 0);
  }

  /**
   * Joins {@code in} of all ranks along dimension {@code dim}, in rank order, and writes the result
   * to {@code out} on every rank. Dimension 0 is the same as {@link #allGather(Tensor, Tensor)}.
   * Dimension 1 joins matrices by their columns: the columns of rank {@code s} begin at column
   * {@code s * columns}.
   *
   * @param in the same shape on every rank; not in place unless {@code dim} is 0
   * @param out the shape of {@code in}, except that {@code dim} is {@link #size()} times as long
   * @throws InvalidArgumentException if the shapes do not match
   */
  public final void allGather(Tensor in, Tensor out, int dim) {
    long rows = Arguments.rowsAlong("allGather", "in", in, "out", out, dim);
    int operation = dim == 0 ? Native.WL_OP_ALL_GATHER : Native.WL_OP_ALL_GATHER_DIM;
    run(operation, in, out, 0, 0, 0, rows, 0);
  }

  /**
   * Copies part {@code r} of {@code in} on {@code root} to {@code out} of rank {@code r}.
   *
   * @param in tensor with {@link #size()} times as many elements as {@code out}. It is read only on
   *     the root and may be null on other ranks. To scatter in place, the root passes its own part
   *     of {@code in} as {@code out}
   */
  public final void scatter(@Nullable Tensor in, Tensor out, int root) {
    Tensor from = rank() == root ? given(in, "in") : null;
    run(Native.WL_OP_SCATTER, from, given(out, "out"), 0, 0, root, 0, 0);
  }

  /**
   * Copies {@code in} of rank {@code s} to part {@code s} of {@code out} on {@code root}.
   *
   * @param out tensor with {@link #size()} times as many elements as {@code in}. It is written only
   *     on the root and may be null on other ranks. To gather in place, the root passes its own
   *     part of {@code out} as {@code in}
   */
  public final void gather(Tensor in, @Nullable Tensor out, int root) {
    Tensor to = rank() == root ? given(out, "out") : null;
    run(Native.WL_OP_GATHER, given(in, "in"), to, 0, 0, root, 0, 0);
  }

  /**
   * Sends consecutive blocks of {@code in}: the next {@code sendCounts[r]} elements go to rank
   * {@code r}, for each rank in ascending order. The {@code receiveCounts[s]} elements of each rank
   * {@code s} arrive in {@code out}, one block after the other. Either tensor may be larger than
   * its blocks.
   *
   * @throws MismatchException on every rank, if the number of elements that a rank sends to a peer
   *     differs from the number that the peer expects; no data has arrived from that rank
   */
  public final void allToAllv(Tensor in, long[] sendCounts, Tensor out, long[] receiveCounts) {
    Arguments.buffers(Native.WL_OP_ALL_TO_ALL_V, given(in, "in"), given(out, "out"));
    Arguments.list("allToAllv", "sendCounts", sendCounts, size());
    Arguments.list("allToAllv", "receiveCounts", receiveCounts, size());
    runParts(Native.WL_OP_ALL_TO_ALL_V, in, sendCounts, null, out, receiveCounts, null, 0);
  }

  /**
   * Runs {@link #allToAllv(Tensor, long[], Tensor, long[])} with blocks at given offsets. The block
   * for rank {@code r} begins at element {@code sendOffsets[r]} of {@code in}. The block from rank
   * {@code s} begins at element {@code receiveOffsets[s]} of {@code out}. Received blocks must not
   * overlap.
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
    int operation = Native.WL_OP_ALL_TO_ALL_V;
    runParts(operation, in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets, 0);
  }

  /**
   * Works like {@link #allToAllv(Tensor, long[], Tensor, long[])}, but ranks need not know how many
   * elements they receive, for example when tokens go to experts.
   *
   * @param out large enough for all received elements. If it is too small on any rank, every rank
   *     gets an {@link InvalidArgumentException} that names that rank and the required size; no
   *     data has moved, and the ranks may call again
   * @return the number of elements received from each rank
   */
  public final long[] allToAllv(Tensor in, long[] sendCounts, Tensor out) {
    Arguments.buffers(Native.WL_OP_ALL_TO_ALL_V, given(in, "in"), given(out, "out"));
    Arguments.list("allToAllv", "sendCounts", sendCounts, size());
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return endpoint.handOff(() -> allToAllv(in, sendCounts, out));
    }
    RankLists lists = endpoint.lists();
    long[] received = new long[endpoint.size];
    Collective.begin(endpoint, thread, Native.WL_OP_ALL_TO_ALL_V, in, out, deadlineNs)
        .inParts(lists.put(0, sendCounts), 0)
        .received(lists.address(1));
    int code = endpoint.submit();
    if (code == Native.WL_OK) {
      lists.get(1, received);
    }
    Collective.end(endpoint, code, in, out);
    Reference.reachabilityFence(owner);
    return received;
  }

  /**
   * Copies {@code in} of all ranks, in ascending rank, to {@code out} on every rank. To gather in
   * place, pass this rank's own part of {@code out} as {@code in}.
   *
   * @param counts the number of elements of each rank's {@code in}; the same on every rank
   */
  public final void allGatherv(Tensor in, Tensor out, long[] counts) {
    Arguments.buffers(Native.WL_OP_ALL_GATHER_V, given(in, "in"), given(out, "out"));
    Arguments.list("allGatherv", "counts", counts, size());
    runParts(Native.WL_OP_ALL_GATHER_V, in, null, null, out, counts, null, 0);
  }

  /**
   * Reduces {@code in} of all ranks, and divides the result among {@code out} of all ranks, in
   * ascending rank. To reduce in place, pass this rank's own part of {@code in} as {@code out}.
   *
   * @param counts the number of elements of each rank's {@code out}; the same on every rank
   */
  public final void reduceScatterv(Tensor in, Tensor out, long[] counts, ReduceOp op) {
    Arguments.buffers(Native.WL_OP_REDUCE_SCATTER_V, given(in, "in"), given(out, "out"));
    Arguments.list("reduceScatterv", "counts", counts, size());
    runParts(Native.WL_OP_REDUCE_SCATTER_V, in, counts, null, out, null, null, code(op));
  }

  /** Runs a collective whose parts differ in size. Allocates nothing unless it fails. */
  private void runParts(
      int operation,
      Tensor in,
      long @Nullable [] inCounts,
      long @Nullable [] inOffsets,
      Tensor out,
      long @Nullable [] outCounts,
      long @Nullable [] outOffsets,
      int op) {
    check(operation, in, out, 0);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(
          () -> runParts(operation, in, inCounts, inOffsets, out, outCounts, outOffsets, op));
      return;
    }
    RankLists lists = endpoint.lists();
    Collective.begin(endpoint, thread, operation, in, out, deadlineNs)
        .inParts(lists.put(0, inCounts), lists.put(1, inOffsets))
        .outParts(lists.put(2, outCounts), lists.put(3, outOffsets))
        .received(0)
        .op(op);
    submit(in, out);
  }

  /**
   * Submits {@code call} and returns at once. {@code call} runs operations of the object that it
   * receives: {@code comm.runAsync(c -> c.allReduce(gradients, ReduceOp.SUM))}.
   *
   * <p>In each communicator, each rank has one thread for these calls. It starts with the first
   * call. It runs them in the order in which they were submitted. An operation that is called
   * directly waits until all calls submitted before it are over. So ranks must agree on the order
   * of calls within a communicator, but not across communicators. The deadline of an operation
   * begins when the operation starts, not while it is queued.
   *
   * <p>If {@code call} throws, {@link Operation#await} throws the same exception. Later calls still
   * run, unless the communicator is dead. When the communicator is closed or dies, queued calls
   * fail for the same reason and never run.
   *
   * <p>The tensors to which {@code call} refers are kept reachable. If one is closed before an
   * operation on it has begun, the operation fails with {@link ClosedException}.
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
  public final <T extends @Nullable Object> Operation<T> supplyAsync(
      Function<? super Collectives, ? extends T> call) {
    Objects.requireNonNull(call, "call");
    return new Operation<>(endpoint.submit(() -> call.apply(this)));
  }

  /**
   * Runs {@code kernel} of a library, on every rank with the same dtypes, shapes and scalars. The
   * kernel's author documents its effect. {@link Kernel#toString} lists its parameters.
   *
   * <p>If a kernel waits for a peer, a deadline, an abort or the loss of the peer ends it. If a
   * kernel never leaves one of its phases, its rank hangs, and only ending the process stops it.
   *
   * @param arguments for each parameter of the kernel, a contiguous {@link Tensor} or a scalar. A
   *     scalar is an {@link Integer} (i32), a {@link Long} (i64), a {@link Float} (f32) or a {@link
   *     Double} (f64). A distributed parameter takes a {@link DistributedTensor}, at the same
   *     offset of the same window on every rank
   * @throws InvalidArgumentException if an argument does not match the kernel's parameter, or the
   *     kernel does not accept the arguments; nothing was sent
   * @throws MismatchException if ranks launch different kernels, or one kernel with different
   *     arguments; no data has moved between them
   * @throws UnsupportedException if ranks are on several hosts; the communicator stays alive
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
   * Returns this rank's collectives on a CUDA stream: {@code
   * comm.onStream(stream).allReduce(gradients, ReduceOp.SUM)}. Calls enqueue operations on the
   * stream instead of running them. Keep the result if calls are frequent.
   *
   * @param stream a {@code CUstream} or {@code cudaStream_t} of this rank's GPU, in its primary
   *     context; 0 and 1 are the legacy default stream. It must exist until all operations enqueued
   *     on it are over
   */
  public final StreamCollectives onStream(long stream) {
    return new StreamCollectives(endpoint, stream, deadlineNs, owner);
  }

  @Override
  final void run(
      int operation,
      @Nullable Tensor in,
      @Nullable Tensor out,
      int op,
      double factor,
      int root,
      long rows,
      int algorithm) {
    check(operation, in, out, root);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> run(operation, in, out, op, factor, root, rows, algorithm));
      return;
    }
    Collective.begin(endpoint, thread, operation, in, out, deadlineNs)
        .equalParts(op, root, rows, algorithm)
        .factor(factor);
    submit(in, out);
  }

  /** Throws for wrong tensors of a collective. {@code root} is 0 if there is none. */
  void check(int operation, @Nullable Tensor in, @Nullable Tensor out, int root) {
    Arguments.buffers(operation, in, out);
  }

  /** Submits the call that {@link Collective#begin} began, and waits for its end. */
  void submit(@Nullable Tensor in, @Nullable Tensor out) {
    Collective.end(endpoint, endpoint.submit(), in, out);
    Reference.reachabilityFence(owner);
  }

  /** Runs {@code call}, which makes several calls. No queued call runs between them. */
  final <T> T inOrder(Supplier<T> call) {
    return endpoint.mustHandOff(Thread.currentThread()) ? endpoint.handOff(call) : call.get();
  }

  /** Runs {@code call} on the communicator's own thread, after queued calls. Waits for its end. */
  final void handOff(Runnable call) {
    endpoint.handOff(call);
    Reference.reachabilityFence(owner);
  }

  private static int code(Algorithm algorithm) {
    return Objects.requireNonNull(algorithm, "algorithm").code();
  }
}
