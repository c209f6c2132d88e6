// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;

/**
 * Enqueues one rank's collectives on a stream of the caller. {@link Collectives#onStream} returns
 * it. The stream orders an operation as it orders a kernel. The operation begins once the streams
 * of all ranks have reached it. Later work on the stream begins once this rank's part is over.
 *
 * <p>Every rank calls the same operations in the same order, each on a stream of its own GPU. A
 * call blocks the host thread until the other ranks have called too, and returns once the operation
 * is enqueued. Its {@link Operation} is over once the GPU has completed the operation. {@link
 * Operation#cancel} aborts the communicator, since enqueued work can't be withdrawn. A deadline
 * applies twice: to the calls of all ranks, and to the operation itself. The second period begins
 * when this rank's stream reaches the operation.
 *
 * <p>Tensors must be in GPU memory, {@link Tensor#isOnDevice}, and may be closed once the operation
 * is over. The parameters mean the same as in {@link Collectives}.
 *
 * <p>Ranks may be in several processes. Then the GPU waits in the kernel for the streams of the
 * other processes' ranks.
 *
 * <p>A call made while the ranks' streams capture a graph adds the operation to the graph. All
 * ranks must be in one process, and their streams must capture the same graph: one stream begins
 * the capture, and the others join it. The returned {@link Operation} is over at once. Each launch
 * of the graph runs the operation again, with the counts given to the call. The communicator keeps
 * the resources of captured operations until it is closed. After that, graphs with such operations
 * can no longer run.
 *
 * <p>A call throws {@link UnsupportedException}, and enqueues nothing, in each of these cases:
 *
 * <ul>
 *   <li>The kernels are not those of target {@link org.windlass.kernel.Target#CUDA}.
 *   <li>A tensor is in the host's memory.
 *   <li>The stream is 2 (the calling thread's stream), or belongs to another GPU.
 *   <li>Only some ranks' streams capture a graph, or any stream does while ranks are in several
 *       processes.
 *   <li>The streams capture a graph again, after operations of the communicator were added to a
 *       newer graph.
 * </ul>
 *
 * <p>A call throws {@link ResourceException} if the communicator has its maximum number of captured
 * operations. It throws {@link InvalidArgumentException} if a tensor's memory was freed or is too
 * small, or if the stream does not exist (any more). In these cases all ranks throw, and the
 * message names the rank with the wrong argument.
 *
 * <p>If a rank can see from its arguments that they are wrong, it throws before the other ranks
 * learn of the call. Examples are a tensor in the host's memory, an impossible address, wrong
 * extents or another target. The other ranks wait until that rank makes a correct call, or until
 * their deadline.
 */
public final class StreamCollectives {
  private final Endpoint endpoint;
  private final long stream;
  private final long deadlineNs;
  private final Object owner;

  StreamCollectives(Endpoint endpoint, long stream, long deadlineNs, Object owner) {
    this.endpoint = endpoint;
    this.stream = stream;
    this.deadlineNs = deadlineNs;
    this.owner = owner;
  }

  /** Returns the stream that was passed to {@link Collectives#onStream}. */
  public long stream() {
    return stream;
  }

  /** Enqueues {@link Collectives#barrier}, which ends when all ranks' streams have reached it. */
  public Operation<Void> barrier() {
    return enqueue(Enqueued::join);
  }

  /** Enqueues {@link Collectives#allToAll(Tensor, Tensor)}. */
  public Operation<Void> allToAll(Tensor in, Tensor out) {
    return enqueue(own -> own.allToAll(in, out));
  }

  /** Enqueues {@link Collectives#allToAll(Tensor, Tensor, Algorithm)}. */
  public Operation<Void> allToAll(Tensor in, Tensor out, Algorithm algorithm) {
    return enqueue(own -> own.allToAll(in, out, algorithm));
  }

  /** Enqueues {@link Collectives#broadcast(Tensor, int)}. */
  public Operation<Void> broadcast(Tensor tensor, int root) {
    Arguments.inPlaceOnStream(Native.WL_OP_BROADCAST, tensor);
    return broadcast(tensor, tensor, root);
  }

  /** Enqueues {@link Collectives#broadcast(Tensor, Tensor, int)}. */
  public Operation<Void> broadcast(@Nullable Tensor in, Tensor out, int root) {
    return enqueue(own -> own.broadcast(in, out, root));
  }

  /** Enqueues {@link Collectives#allGather(Tensor, Tensor)}. */
  public Operation<Void> allGather(Tensor in, Tensor out) {
    return enqueue(own -> own.allGather(in, out));
  }

  /** Enqueues {@link Collectives#allGather(Tensor, Tensor, int)}. */
  public Operation<Void> allGather(Tensor in, Tensor out, int dim) {
    return enqueue(own -> own.allGather(in, out, dim));
  }

  /** Enqueues {@link Collectives#reduceScatter(Tensor, Tensor, ReduceOp)}. */
  public Operation<Void> reduceScatter(Tensor in, Tensor out, ReduceOp op) {
    return enqueue(own -> own.reduceScatter(in, out, op));
  }

  /** Enqueues {@link Collectives#reduceScatter(Tensor, Tensor, double)}. */
  public Operation<Void> reduceScatter(Tensor in, Tensor out, double factor) {
    return enqueue(own -> own.reduceScatter(in, out, factor));
  }

  /** Enqueues {@link Collectives#reduceScatter(Tensor, Tensor, ReduceOp, int)}. */
  public Operation<Void> reduceScatter(Tensor in, Tensor out, ReduceOp op, int dim) {
    return enqueue(own -> own.reduceScatter(in, out, op, dim));
  }

  /** Enqueues {@link Collectives#allReduce(Tensor, ReduceOp)}. */
  public Operation<Void> allReduce(Tensor tensor, ReduceOp op) {
    Arguments.inPlaceOnStream(Native.WL_OP_ALL_REDUCE, tensor);
    return allReduce(tensor, tensor, op);
  }

  /** Enqueues {@link Collectives#allReduce(Tensor, Tensor, ReduceOp)}. */
  public Operation<Void> allReduce(Tensor in, Tensor out, ReduceOp op) {
    return enqueue(own -> own.allReduce(in, out, op));
  }

  /** Enqueues {@link Collectives#allReduce(Tensor, Tensor, ReduceOp, Algorithm)}. */
  public Operation<Void> allReduce(Tensor in, Tensor out, ReduceOp op, Algorithm algorithm) {
    return enqueue(own -> own.allReduce(in, out, op, algorithm));
  }

  /** Enqueues {@link Collectives#allReduce(Tensor, Tensor, double)}. */
  public Operation<Void> allReduce(Tensor in, Tensor out, double factor) {
    return enqueue(own -> own.allReduce(in, out, factor));
  }

  /** Enqueues {@link Collectives#scan(Tensor, Tensor, ReduceOp)}. */
  public Operation<Void> scan(Tensor in, Tensor out, ReduceOp op) {
    return enqueue(own -> own.scan(in, out, op));
  }

  /** Enqueues {@link Collectives#scan(Tensor, Tensor, double)}. */
  public Operation<Void> scan(Tensor in, Tensor out, double factor) {
    return enqueue(own -> own.scan(in, out, factor));
  }

  /** Enqueues {@link Collectives#exclusiveScan(Tensor, Tensor, ReduceOp)}. */
  public Operation<Void> exclusiveScan(Tensor in, Tensor out, ReduceOp op) {
    return enqueue(own -> own.exclusiveScan(in, out, op));
  }

  /** Enqueues {@link Collectives#exclusiveScan(Tensor, Tensor, double)}. */
  public Operation<Void> exclusiveScan(Tensor in, Tensor out, double factor) {
    return enqueue(own -> own.exclusiveScan(in, out, factor));
  }

  /** Enqueues {@link Collectives#scatter}. */
  public Operation<Void> scatter(@Nullable Tensor in, Tensor out, int root) {
    return enqueue(own -> own.scatter(in, out, root));
  }

  /** Enqueues {@link Collectives#gather}. */
  public Operation<Void> gather(Tensor in, @Nullable Tensor out, int root) {
    return enqueue(own -> own.gather(in, out, root));
  }

  /** Enqueues {@link Collectives#reduce(Tensor, Tensor, ReduceOp, int)}. */
  public Operation<Void> reduce(Tensor in, @Nullable Tensor out, ReduceOp op, int root) {
    return enqueue(own -> own.reduce(in, out, op, root));
  }

  /** Enqueues {@link Collectives#reduce(Tensor, Tensor, double, int)}. */
  public Operation<Void> reduce(Tensor in, @Nullable Tensor out, double factor, int root) {
    return enqueue(own -> own.reduce(in, out, factor, root));
  }

  /** Enqueues {@link Collectives#allToAllv(Tensor, long[], Tensor, long[])}. */
  public Operation<Void> allToAllv(Tensor in, long[] sendCounts, Tensor out, long[] receiveCounts) {
    return enqueue(own -> own.allToAllv(in, sendCounts, out, receiveCounts));
  }

  /** Enqueues {@link Collectives#allToAllv(Tensor, long[], long[], Tensor, long[], long[])}. */
  public Operation<Void> allToAllv(
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets) {
    return enqueue(
        own -> own.allToAllv(in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets));
  }

  /** Enqueues {@link Collectives#allGatherv}. */
  public Operation<Void> allGatherv(Tensor in, Tensor out, long[] counts) {
    return enqueue(own -> own.allGatherv(in, out, counts));
  }

  /** Enqueues {@link Collectives#reduceScatterv}. */
  public Operation<Void> reduceScatterv(Tensor in, Tensor out, long[] counts, ReduceOp op) {
    return enqueue(own -> own.reduceScatterv(in, out, counts, op));
  }

  private Operation<Void> enqueue(Consumer<Enqueued> call) {
    Enqueued own = new Enqueued(this);
    call.accept(own);
    return Objects.requireNonNull(own.operation);
  }

  /** Enqueues an operation of {@link Collectives} instead of running it. */
  static final class Enqueued extends Collectives {
    private final long stream;

    /** The operation that was enqueued. */
    private @Nullable Operation<Void> operation;

    private Enqueued(StreamCollectives of) {
      super(of.endpoint, of.deadlineNs, of.owner);
      this.stream = of.stream;
    }

    /** Enqueues a barrier. */
    void join() {
      check(Native.WL_OP_BARRIER, null, null, 0);
      Thread thread = Thread.currentThread();
      if (endpoint.mustHandOff(thread)) {
        handOff(this::join);
        return;
      }
      endpoint.begin(thread);
      endpoint.call.of(Native.WL_OP_BARRIER, 0, deadlineNs);
      submit(null, null);
    }

    @Override
    void check(int operation, @Nullable Tensor in, @Nullable Tensor out, int root) {
      Arguments.onStream(operation, in, out, root, endpoint.size);
    }

    @Override
    void submit(@Nullable Tensor in, @Nullable Tensor out) {
      operation = Collective.enqueue(endpoint, stream, in, out, owner);
    }
  }
}
