// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.MemoryPool;
import org.windlass.Tensor;
import org.windlass.Window;

/** A collective of a random program on one rank, and what plain Java says that it gives. */
record CollectiveStep(Step step, Communicator comm) {
  /** Runs it, and compares what it gives. */
  void run() {
    int n = comm.size();
    int me = comm.rank();
    int at = step.root() % n;
    int count = step.count();
    long[] counts = IntStream.range(0, n).mapToLong(r -> (count + 3L * r) % 1013).toArray();
    long all = IntStream.range(0, n).mapToLong(r -> counts[r]).sum();
    long before = IntStream.range(0, me).mapToLong(r -> counts[r]).sum();
    switch (step.kind()) {
      case ALL_TO_ALL ->
          compared(
              (long) n * count,
              (long) n * count,
              (in, out) -> comm.allToAll(in, out),
              i -> input(count == 0 ? 0 : (int) (i / count), (long) me * count + i % count));
      case BROADCAST ->
          compared(
              count, count, (in, out) -> comm.broadcast(in, out, at), i -> input(at, i));
      case ALL_GATHER ->
          compared(
              count,
              (long) n * count,
              (in, out) -> comm.allGather(in, out),
              i -> input((int) (i / count), i % count));
      case ALL_GATHER_COLUMNS -> {
        int rows = 1 + count % 7;
        int columns = count == 0 ? 0 : Math.max(1, count / rows);
        long wide = (long) n * columns;
        compared(
            (long) rows * columns,
            rows * wide,
            (in, out) ->
                comm.allGather(in.splitDim(0, rows, columns), out.splitDim(0, rows, wide), 1),
            i -> input((int) (i % wide / columns), i / wide * columns + i % columns));
      }
      case REDUCE_SCATTER ->
          compared(
              (long) n * count,
              count,
              (in, out) -> comm.reduceScatter(in, out, step.op()),
              i -> reduced(n, (long) me * count + i));
      case ALL_REDUCE ->
          compared(
              count,
              count,
              (in, out) -> comm.allReduce(in, out, step.op(), step.algorithm()),
              i -> reduced(n, i));
      case ASYNC ->
          compared(
              count,
              count,
              (in, out) -> {
                var first = comm.runAsync(c -> c.allReduce(in, out, step.op()));
                var second = comm.runAsync(c -> c.barrier());
                first.await();
                second.await();
              },
              i -> reduced(n, i));
      case SCATTER ->
          compared(
              (long) n * count,
              count,
              (in, out) -> comm.scatter(me == at ? in : null, out, at),
              i -> input(at, (long) me * count + i));
      case GATHER ->
          compared(
              count,
              me == at ? (long) n * count : 0,
              (in, out) -> comm.gather(in, me == at ? out : null, at),
              i -> input((int) (i / count), i % count));
      case REDUCE ->
          compared(
              count,
              me == at ? count : 0,
              (in, out) -> comm.reduce(in, me == at ? out : null, step.op(), at),
              i -> reduced(n, i));
      case ALL_GATHER_V ->
          compared(
              counts[me],
              all,
              (in, out) -> comm.allGatherv(in, out, counts),
              i -> input(owner(counts, i), i - start(counts, owner(counts, i))));
      case REDUCE_SCATTER_V ->
          compared(
              all,
              counts[me],
              (in, out) -> comm.reduceScatterv(in, out, counts, step.op()),
              i -> reduced(n, before + i));
      case ALL_TO_ALL_V -> {
        // Rank r sends (count + r + 2 d) % 509 to rank d.
        long[] sent = IntStream.range(0, n).mapToLong(d -> part(me, d)).toArray();
        long[] received = IntStream.range(0, n).mapToLong(r -> part(r, me)).toArray();
        compared(
            IntStream.range(0, n).mapToLong(d -> sent[d]).sum(),
            IntStream.range(0, n).mapToLong(r -> received[r]).sum(),
            (in, out) -> comm.allToAllv(in, sent, out, received),
            i -> {
              int from = owner(received, i);
              long skipped = IntStream.range(0, me).mapToLong(d -> part(from, d)).sum();
              return input(from, skipped + i - start(received, from));
            });
      }
      default -> throw new AssertionError(step.kind());
    }
  }

  private long part(int from, int to) {
    return (step.count() + from + 2L * to) % 509;
  }

  private static int owner(long[] counts, long index) {
    int rank = 0;
    for (long end = counts[0]; index >= end; end += counts[rank]) {
      rank++;
    }
    return rank;
  }

  private static long start(long[] counts, int rank) {
    return IntStream.range(0, rank).mapToLong(r -> counts[r]).sum();
  }

  /** The bits of a double, as {@link #compared} expects elements. */
  private long input(int rank, long index) {
    return Double.doubleToLongBits(step.value(rank, index));
  }

  private long reduced(int ranks, long index) {
    double result = step.value(0, index);
    for (int rank = 1; rank < ranks; rank++) {
      double next = step.value(rank, index);
      result =
          switch (step.op()) {
            case MAX -> Math.max(result, next);
            case MIN -> Math.min(result, next);
            default -> result + next;
          };
    }
    return Double.doubleToLongBits(result);
  }

  private interface Call {
    void run(Tensor in, Tensor out);
  }

  private void compared(long inCount, long outCount, Call call, LongUnaryOperator expected) {
    // A window holds the same bytes on every rank; the counts of ranks differ by less than this.
    long room = Math.max(inCount, outCount) + 8L * 1024 * comm.size();
    try (Memory memory = Memory.of(comm, step, roomFor(room))) {
      Tensor in = memory.tensor(step.dtype(), inCount);
      Tensor out = memory.tensor(step.dtype(), outCount);
      Step.write(in, i -> step.value(comm.rank(), i));
      out.fill(-1.0);
      call.run(in, out);
      double[] got = Step.read(out);
      for (int i = 0; i < got.length; i++) {
        double wanted = Double.longBitsToDouble(expected.applyAsLong(i));
        if (got[i] != wanted) {
          throw new Step.WrongData(step, comm.rank(), i, got[i], wanted);
        }
      }
    }
  }

  /** The same on every rank, whatever its own counts. */
  private long roomFor(long least) {
    long parts = (long) comm.size() * Math.max(step.count(), 1013);
    long most = Math.max(parts, 1024) + 8L * 1024 * comm.size();
    if (least > most) {
      throw new AssertionError("room " + least + " in " + most);
    }
    return 2 * most * step.dtype().bytes();
  }

  /** Where a rank's tensors of a step lie: in a window, in a memory pool, or in neither. */
  private record Memory(Window window, MemoryPool pool) implements AutoCloseable {
    static Memory of(Communicator comm, Step step, long bytes) {
      return step.plain()
          ? new Memory(null, step.isPooled() ? comm.memoryPool(bytes) : null)
          : new Memory(comm.window(bytes), null);
    }

    Tensor tensor(DType dtype, long count) {
      if (window != null) {
        return window.tensor(dtype, count);
      }
      return pool != null ? pool.allocate(dtype, count) : Tensor.allocate(dtype, count);
    }

    @Override
    public void close() {
      if (window != null) {
        window.close();
      }
      if (pool != null) {
        pool.close();
      }
    }
  }
}
