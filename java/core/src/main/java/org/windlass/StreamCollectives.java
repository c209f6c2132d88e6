// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.RankLists;

/**
 * One rank's collectives on a stream of the caller's, as {@link Collectives#onStream} gives them:
 * each is enqueued, and ordered on the stream like a kernel. It begins once the streams of all
 * ranks have come to it, and what follows on the stream begins once this rank's part is over.
 *
 * <p>Every rank calls the same operations in the same order, each on a stream of its own GPU. A
 * call waits for the others to make theirs, on the host, and returns once the operation is
 * enqueued. Its {@link Operation} is over once the GPU has left it; {@link Operation#cancel} aborts
 * the communicator, since what is enqueued isn't taken back. A deadline counts twice: for the ranks
 * to make their calls, and from when this rank's stream has come to the operation until it is over.
 *
 * <p>Tensors lie in GPUs' memory, {@link Tensor#isOnDevice}, and may be closed once the operation
 * is over. Whatever the arguments mean is what {@link Collectives} says.
 *
 * <p>Ranks may live in several processes. A GPU then waits in the kernel for the streams of ranks
 * of other processes.
 *
 * <p>While the streams of all ranks, which live in one process, capture one graph, begun on one of
 * them and joined by the others, a call adds the operation to the graph: its Operation is over at
 * once, and each launch of the graph runs it anew, with the counts that its call was given. The
 * communicator keeps what such an operation takes until it is closed, and no graph that holds one
 * runs after that.
 *
 * <p>Any call throws {@link UnsupportedException}, and nothing was enqueued, where the kernels are
 * of another target than {@link org.windlass.kernel.Target#CUDA}; a tensor lies in the host's
 * memory; the stream is the calling thread's, 2, or of another GPU; some ranks' streams capture a
 * graph and some don't; they go on with one once another, which came after it, holds operations of
 * the communicator; any captures one where ranks live in several processes. It throws {@link
 * ResourceException} where the communicator holds as many captured operations as it can, and {@link
 * InvalidArgumentException} where a tensor's memory was freed or ends before the tensor does, or
 * the driver knows no stream of that handle, as of one that was destroyed: on all ranks, with the
 * one whose it is named.
 *
 * <p>What a call tells from its arguments alone it refuses on its own rank, before others learn of
 * it: a tensor that was made in the host's memory, an address that no process can have, extents
 * that don't fit, another target. The others wait for that rank, until it makes the call that they
 * made or their deadline has passed.
 */
public final class StreamCollectives {
  private final Endpoint endpoint;
  private final long stream;
  private final long deadlineNs;
  private final Object owner;

  /**
   * @param owner what the endpoint lives as long as
   */
  StreamCollectives(Endpoint endpoint, long stream, long deadlineNs, Object owner) {
    this.endpoint = endpoint;
    this.stream = stream;
    this.deadlineNs = deadlineNs;
    this.owner = owner;
  }

  /** The stream, as it was given. */
  public long stream() {
    return stream;
  }

  /** {@link Collectives#barrier}: the streams of all ranks have come to it. */
  public Operation<Void> barrier() {
    return enqueue(Native.WL_OP_BARRIER, null, null, 0, 0, 0, 0);
  }

  /** {@link Collectives#allToAll(Tensor, Tensor)}. */
  public Operation<Void> allToAll(Tensor in, Tensor out) {
    return allToAll(in, out, Algorithm.AUTO);
  }

  /** {@link Collectives#allToAll(Tensor, Tensor, Algorithm)}. */
  public Operation<Void> allToAll(Tensor in, Tensor out, Algorithm algorithm) {
    return enqueue(
        Native.WL_OP_ALL_TO_ALL, given(in, "in"), given(out, "out"), 0, 0, 0, code(algorithm));
  }

  /** {@link Collectives#broadcast(Tensor, int)}. */
  public Operation<Void> broadcast(Tensor tensor, int root) {
    Arguments.inPlaceOnStream(Native.WL_OP_BROADCAST, tensor);
    return broadcast(tensor, tensor, root);
  }

  /** {@link Collectives#broadcast(Tensor, Tensor, int)}. */
  public Operation<Void> broadcast(Tensor in, Tensor out, int root) {
    Tensor from = endpoint.rank == root ? given(in, "in") : null;
    return enqueue(Native.WL_OP_BROADCAST, from, given(out, "out"), 0, root, 0, 0);
  }

  /** {@link Collectives#allGather(Tensor, Tensor)}. */
  public Operation<Void> allGather(Tensor in, Tensor out) {
    return enqueue(Native.WL_OP_ALL_GATHER, given(in, "in"), given(out, "out"), 0, 0, 0, 0);
  }

  /** {@link Collectives#allGather(Tensor, Tensor, int)}. */
  public Operation<Void> allGather(Tensor in, Tensor out, int dim) {
    int operation = Arguments.alongDim(in, out, dim);
    return enqueue(operation, in, out, 0, 0, dim == 0 ? 0 : in.shape[0], 0);
  }

  /** {@link Collectives#reduceScatter}. */
  public Operation<Void> reduceScatter(Tensor in, Tensor out, ReduceOp op) {
    return enqueue(
        Native.WL_OP_REDUCE_SCATTER, given(in, "in"), given(out, "out"), code(op), 0, 0, 0);
  }

  /** {@link Collectives#allReduce(Tensor, ReduceOp)}. */
  public Operation<Void> allReduce(Tensor tensor, ReduceOp op) {
    Arguments.inPlaceOnStream(Native.WL_OP_ALL_REDUCE, tensor);
    return allReduce(tensor, tensor, op);
  }

  /** {@link Collectives#allReduce(Tensor, Tensor, ReduceOp)}. */
  public Operation<Void> allReduce(Tensor in, Tensor out, ReduceOp op) {
    return allReduce(in, out, op, Algorithm.AUTO);
  }

  /** {@link Collectives#allReduce(Tensor, Tensor, ReduceOp, Algorithm)}. */
  public Operation<Void> allReduce(Tensor in, Tensor out, ReduceOp op, Algorithm algorithm) {
    int by = code(algorithm);
    return enqueue(
        Native.WL_OP_ALL_REDUCE, given(in, "in"), given(out, "out"), code(op), 0, 0, by);
  }

  /** {@link Collectives#scatter}. */
  public Operation<Void> scatter(Tensor in, Tensor out, int root) {
    Tensor from = endpoint.rank == root ? given(in, "in") : null;
    return enqueue(Native.WL_OP_SCATTER, from, given(out, "out"), 0, root, 0, 0);
  }

  /** {@link Collectives#gather}. */
  public Operation<Void> gather(Tensor in, Tensor out, int root) {
    Tensor to = endpoint.rank == root ? given(out, "out") : null;
    return enqueue(Native.WL_OP_GATHER, given(in, "in"), to, 0, root, 0, 0);
  }

  /** {@link Collectives#reduce}. */
  public Operation<Void> reduce(Tensor in, Tensor out, ReduceOp op, int root) {
    Tensor to = endpoint.rank == root ? given(out, "out") : null;
    return enqueue(Native.WL_OP_REDUCE, given(in, "in"), to, code(op), root, 0, 0);
  }

  /** {@link Collectives#allToAllv(Tensor, long[], Tensor, long[])}. */
  public Operation<Void> allToAllv(
      Tensor in, long[] sendCounts, Tensor out, long[] receiveCounts) {
    given(in, "in");
    given(out, "out");
    list("allToAllv", "sendCounts", sendCounts);
    list("allToAllv", "receiveCounts", receiveCounts);
    return exchange(in, sendCounts, null, out, receiveCounts, null);
  }

  /** {@link Collectives#allToAllv(Tensor, long[], long[], Tensor, long[], long[])}. */
  public Operation<Void> allToAllv(
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets) {
    given(in, "in");
    given(out, "out");
    list("allToAllv", "sendCounts", sendCounts);
    list("allToAllv", "sendOffsets", sendOffsets);
    list("allToAllv", "receiveCounts", receiveCounts);
    list("allToAllv", "receiveOffsets", receiveOffsets);
    return exchange(in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets);
  }

  /** {@link Collectives#allGatherv}. */
  public Operation<Void> allGatherv(Tensor in, Tensor out, long[] counts) {
    given(in, "in");
    given(out, "out");
    list("allGatherv", "counts", counts);
    check(Native.WL_OP_ALL_GATHER_V, in, out);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return endpoint.handOff(() -> allGatherv(in, out, counts));
    }
    PartCollective.allGather(endpoint, thread, in, out, counts, deadlineNs);
    return Collective.enqueue(endpoint, stream, in, out, owner);
  }

  /** {@link Collectives#reduceScatterv}. */
  public Operation<Void> reduceScatterv(Tensor in, Tensor out, long[] counts, ReduceOp op) {
    given(in, "in");
    given(out, "out");
    list("reduceScatterv", "counts", counts);
    int code = code(op);
    check(Native.WL_OP_REDUCE_SCATTER_V, in, out);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return endpoint.handOff(() -> reduceScatterv(in, out, counts, op));
    }
    PartCollective.reduceScatter(endpoint, thread, in, out, counts, code, deadlineNs);
    return Collective.enqueue(endpoint, stream, in, out, owner);
  }

  private Operation<Void> exchange(
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets) {
    check(Native.WL_OP_ALL_TO_ALL_V, in, out);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return endpoint.handOff(
          () -> exchange(in, sendCounts, sendOffsets, out, receiveCounts, receiveOffsets));
    }
    RankLists lists = endpoint.lists();
    Collective.begin(endpoint, thread, Native.WL_OP_ALL_TO_ALL_V, in, out, deadlineNs)
        .inParts(lists.put(0, sendCounts), lists.put(1, sendOffsets))
        .outParts(lists.put(2, receiveCounts), lists.put(3, receiveOffsets))
        .received(0);
    return Collective.enqueue(endpoint, stream, in, out, owner);
  }

  private void check(int operation, Tensor in, Tensor out) {
    Arguments.onStream(operation, in, out, 0, endpoint.size);
  }

  private void list(String operation, String name, long[] list) {
    Arguments.list(operation, name, list, endpoint.size);
  }

  private Operation<Void> enqueue(
      int operation, Tensor in, Tensor out, int op, int root, long rows, int algorithm) {
    Arguments.onStream(operation, in, out, root, endpoint.size);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      return endpoint.handOff(() -> enqueue(operation, in, out, op, root, rows, algorithm));
    }
    if (in == null && out == null) {
      endpoint.begin(thread);
      endpoint.call.of(operation, 0, deadlineNs);
    } else {
      Collective.begin(endpoint, thread, operation, in, out, deadlineNs)
          .equalParts(op, root, rows, algorithm);
    }
    return Collective.enqueue(endpoint, stream, in, out, owner);
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
