// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.ReduceOp;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.redistribute.Batch;
import org.windlass.redistribute.Link;
import org.windlass.redistribute.LinkBatch;
import org.windlass.redistribute.LinkTransfer;
import org.windlass.redistribute.Transfer;

/**
 * A step of a random program: what every rank calls, and what plain Java says it gives. Inputs
 * follow from (step, rank, index) and are whole numbers so small that no order of adding rounds.
 *
 * @param number which step it is; inputs differ with it
 * @param inner what the parts of a split run
 */
record Step(
    int number,
    Kind kind,
    DType dtype,
    int count,
    int root,
    ReduceOp op,
    Algorithm algorithm,
    boolean plain,
    long seed,
    List<Step> inner) {

  enum Kind {
    BARRIER,
    ALL_TO_ALL,
    BROADCAST,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_REDUCE,
    SCATTER,
    GATHER,
    REDUCE,
    ALL_TO_ALL_V,
    ALL_GATHER_V,
    REDUCE_SCATTER_V,
    PUT,
    ACCUMULATE,
    ASYNC,
    TRANSFER,
    LINK,
    SPLIT
  }

  private static final DType[] DTYPES = {DType.F32, DType.BF16, DType.F16, DType.F64};
  private static final int[] COUNTS = {0, 1, 3, 4, 64, 1000, 1025, 5000, 30_000};
  private static final Algorithm[] ALL_REDUCES = {
    Algorithm.AUTO,
    Algorithm.ONE_PHASE,
    Algorithm.TWO_PHASE,
    Algorithm.RING,
    Algorithm.BIDIRECTIONAL_RING
  };
  private static final ReduceOp[] OPS = {ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN};

  static Step random(int number, int ranks, Random random, boolean mayNest) {
    Kind[] kinds = Kind.values();
    Kind kind = kinds[random.nextInt(mayNest ? kinds.length : kinds.length - 1)];
    List<Step> inner = new ArrayList<>();
    int parts = kind == Kind.SPLIT ? 1 + random.nextInt(3) : 0;
    for (int i = 0; i < parts; i++) {
      inner.add(random(100 * (number + 1) + i, 1, random, false));
    }
    return new Step(
        number,
        kind,
        DTYPES[random.nextInt(DTYPES.length)],
        COUNTS[random.nextInt(COUNTS.length)],
        random.nextInt(ranks),
        OPS[random.nextInt(OPS.length)],
        ALL_REDUCES[random.nextInt(ALL_REDUCES.length)],
        random.nextBoolean(),
        random.nextLong(),
        inner);
  }

  /** The same with something that ranks have to agree on changed; itself where nothing is. */
  Step mistaken() {
    return switch (kind) {
      case BARRIER -> new Step(number, Kind.ALL_REDUCE, dtype, 4, root, op, algorithm, plain, seed, inner);
      case PUT, ACCUMULATE, TRANSFER, LINK, SPLIT ->
          new Step(number, Kind.BARRIER, dtype, count, root, op, algorithm, plain, seed, inner);
      default -> new Step(number, kind, dtype, count + 1, root, op, algorithm, plain, seed, inner);
    };
  }

  private static double value(int number, int rank, long index) {
    return Math.floorMod(number * 31L + rank * 7L + index * 13, 13);
  }

  /** Runs the step as the communicator's rank, and compares what it gives. */
  void run(Communicator comm) {
    switch (kind) {
      case BARRIER -> comm.barrier();
      case PUT -> put(comm);
      case ACCUMULATE -> accumulate(comm);
      case TRANSFER -> transfer(comm);
      case LINK -> link(comm);
      case SPLIT -> split(comm);
      default -> collective(comm);
    }
  }

  // ---- collectives --------------------------------------------------------------------------------

  private void collective(Communicator comm) {
    int n = comm.size();
    int me = comm.rank();
    int at = root % n;
    long[] counts = IntStream.range(0, n).mapToLong(r -> (count + 3L * r) % 1013).toArray();
    long all = IntStream.range(0, n).mapToLong(r -> counts[r]).sum();
    long before = IntStream.range(0, me).mapToLong(r -> counts[r]).sum();
    switch (kind) {
      case ALL_TO_ALL ->
          compared(
              comm,
              (long) n * count,
              (long) n * count,
              (in, out) -> comm.allToAll(in, out),
              i -> source(count == 0 ? 0 : (int) (i / count), (long) me * count + i % count));
      case BROADCAST ->
          compared(
              comm, count, count, (in, out) -> comm.broadcast(in, out, at), i -> source(at, i));
      case ALL_GATHER ->
          compared(
              comm,
              count,
              (long) n * count,
              (in, out) -> comm.allGather(in, out),
              i -> source((int) (i / count), i % count));
      case REDUCE_SCATTER ->
          compared(
              comm,
              (long) n * count,
              count,
              (in, out) -> comm.reduceScatter(in, out, op),
              i -> reduced(n, (long) me * count + i));
      case ALL_REDUCE ->
          compared(
              comm,
              count,
              count,
              (in, out) -> comm.allReduce(in, out, op, algorithm),
              i -> reduced(n, i));
      case ASYNC ->
          compared(
              comm,
              count,
              count,
              (in, out) -> {
                var first = comm.async(c -> c.allReduce(in, out, op));
                var second = comm.async(c -> c.barrier());
                first.await();
                second.await();
              },
              i -> reduced(n, i));
      case SCATTER ->
          compared(
              comm,
              (long) n * count,
              count,
              (in, out) -> comm.scatter(me == at ? in : null, out, at),
              i -> source(at, (long) me * count + i));
      case GATHER ->
          compared(
              comm,
              count,
              me == at ? (long) n * count : 0,
              (in, out) -> comm.gather(in, me == at ? out : null, at),
              i -> source((int) (i / count), i % count));
      case REDUCE ->
          compared(
              comm,
              count,
              me == at ? count : 0,
              (in, out) -> comm.reduce(in, me == at ? out : null, op, at),
              i -> reduced(n, i));
      case ALL_GATHER_V ->
          compared(
              comm,
              counts[me],
              all,
              (in, out) -> comm.allGatherv(in, out, counts),
              i -> source(owner(counts, i), i - start(counts, owner(counts, i))));
      case REDUCE_SCATTER_V ->
          compared(
              comm,
              all,
              counts[me],
              (in, out) -> comm.reduceScatterv(in, out, counts, op),
              i -> reduced(n, before + i));
      case ALL_TO_ALL_V -> {
        // Rank r sends (count + r + 2 d) % 509 to rank d.
        long[] sent = IntStream.range(0, n).mapToLong(d -> part(me, d)).toArray();
        long[] received = IntStream.range(0, n).mapToLong(r -> part(r, me)).toArray();
        compared(
            comm,
            IntStream.range(0, n).mapToLong(d -> sent[d]).sum(),
            IntStream.range(0, n).mapToLong(r -> received[r]).sum(),
            (in, out) -> comm.allToAllv(in, sent, out, received),
            i -> {
              int from = owner(received, i);
              long skipped = IntStream.range(0, me).mapToLong(d -> part(from, d)).sum();
              return source(from, skipped + i - start(received, from));
            });
      }
      default -> throw new AssertionError(kind);
    }
  }

  private long part(int from, int to) {
    return (count + from + 2L * to) % 509;
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
  private long source(int rank, long index) {
    return Double.doubleToLongBits(value(number, rank, index));
  }

  private long reduced(int ranks, long index) {
    double result = value(number, 0, index);
    for (int rank = 1; rank < ranks; rank++) {
      double next = value(number, rank, index);
      result =
          switch (op) {
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

  private void compared(
      Communicator comm, long inCount, long outCount, Call call, LongUnaryOperator expected) {
    // A window holds the same bytes on every rank; the counts of ranks differ by less than this.
    long room = Math.max(inCount, outCount) + 8L * 1024 * comm.size();
    try (Memory memory = plain ? new Memory(null) : new Memory(comm.window(roomFor(comm, room)))) {
      Tensor in = memory.tensor(dtype, inCount);
      Tensor out = memory.tensor(dtype, outCount);
      write(in, i -> value(number, comm.rank(), i));
      out.fill(-1.0);
      call.run(in, out);
      double[] got = read(out);
      for (int i = 0; i < got.length; i++) {
        double wanted = Double.longBitsToDouble(expected.applyAsLong(i));
        if (got[i] != wanted) {
          throw new WrongData(this, comm.rank(), i, got[i], wanted);
        }
      }
    }
  }

  /** The same on every rank, whatever its own counts. */
  private long roomFor(Communicator comm, long least) {
    long most = Math.max((long) comm.size() * Math.max(count, 1013), 1024) + 8L * 1024 * comm.size();
    if (least > most) {
      throw new AssertionError("room " + least + " in " + most);
    }
    return 2 * most * dtype.bytes();
  }

  /** Where a rank's tensors of a step lie. */
  private record Memory(Window window) implements AutoCloseable {
    Tensor tensor(DType dtype, long count) {
      return window == null ? Tensor.allocate(dtype, count) : window.tensor(dtype, count);
    }

    @Override
    public void close() {
      if (window != null) {
        window.close();
      }
    }
  }

  private interface Values {
    double at(long index);
  }

  private static void write(Tensor tensor, Values values) {
    double[] all = new double[(int) tensor.numel()];
    for (int i = 0; i < all.length; i++) {
      all[i] = values.at(i);
    }
    tensor.copyFrom(all);
  }

  private static double[] read(Tensor tensor) {
    double[] all = new double[(int) tensor.numel()];
    tensor.copyTo(all);
    return all;
  }

  private void check(Communicator comm, Tensor tensor, Values expected) {
    double[] got = read(tensor);
    for (int i = 0; i < got.length; i++) {
      if (got[i] != expected.at(i)) {
        throw new WrongData(this, comm.rank(), i, got[i], expected.at(i));
      }
    }
  }

  /** An operation that returned Ok and gave something else than it should. */
  static final class WrongData extends AssertionError {
    private static final long serialVersionUID = 1L;

    WrongData(Step step, int rank, long index, double got, double wanted) {
      super(
          "%s: rank %d has %s at element %d; it should be %s"
              .formatted(step, rank, got, index, wanted));
    }
  }

  // ---- one-sided ----------------------------------------------------------------------------------

  private void put(Communicator comm) {
    int right = (comm.rank() + 1) % comm.size();
    int left = (comm.rank() + comm.size() - 1) % comm.size();
    long bytes = 2 * (dtype.bytesOf(count) + 64) + Signals.bytes(1, comm.size());
    try (Window window = comm.window(bytes)) {
      Signals signals = window.signals(1);
      DistributedTensor inbox = window.tensor(dtype, count);
      Tensor row = plain ? Tensor.allocate(dtype, count) : window.tensor(dtype, count);
      write(row, i -> value(number, comm.rank(), i));
      window.put(row, right, inbox);
      signals.notify(right, 0, 1);
      signals.await(left, 0, 1);
      check(comm, inbox, i -> value(number, left, i));
      comm.barrier();
    }
  }

  private void accumulate(Communicator comm) {
    int owner = root % comm.size();
    DType summed = dtype == DType.F64 ? DType.F32 : dtype;
    try (Window window = comm.window(summed.bytesOf(count) + 64)) {
      DistributedTensor sums = window.tensor(summed, count);
      Tensor row = Tensor.allocate(summed, count);
      write(row, i -> value(number, comm.rank(), i));
      window.accumulate(row, owner, sums);
      comm.barrier();
      check(
          comm,
          sums,
          i ->
              comm.rank() != owner
                  ? 0
                  : IntStream.range(0, comm.size()).mapToDouble(r -> value(number, r, i)).sum());
    }
  }

  // ---- redistribution -----------------------------------------------------------------------------

  private static final long ROWS = 37;
  private static final long COLUMNS = 29;

  /** A mesh of one dimension over some of the ranks, with one placement. */
  private record Side(int first, int ranks, String placement) {
    static Side random(int of, Random random, boolean mayBePartial) {
      int ranks = 1 + random.nextInt(of);
      String[] placements = {"S0", "S1", "R", "P"};
      return new Side(
          random.nextInt(of - ranks + 1), ranks, placements[random.nextInt(mayBePartial ? 4 : 3)]);
    }

    Layout layout() {
      return Layout.parse(ranks + "@" + first + ":" + placement);
    }

    boolean holds(int rank) {
      return rank >= first && rank < first + ranks;
    }

    /** First row, rows, first column, columns. */
    long[] box(int rank) {
      long[] box = {0, ROWS, 0, COLUMNS};
      if (placement.startsWith("S")) {
        int dim = placement.charAt(1) - '0';
        long piece = (box[2 * dim + 1] + ranks - 1) / ranks;
        long start = Math.min(box[2 * dim + 1], piece * (rank - first));
        box[2 * dim + 1] = Math.min(box[2 * dim + 1] - start, piece);
        box[2 * dim] = start;
      }
      return box;
    }

    Tensor tensor(int rank, DType dtype) {
      long[] box = box(rank);
      return holds(rank) ? Tensor.allocate(dtype, box[1], box[3]) : null;
    }

    /** What a rank holds at an index of its own piece. */
    double value(int rank, long index, long version) {
      long[] box = box(rank);
      long row = box[0] + index / box[3];
      long column = box[2] + index % box[3];
      double whole = Math.floorMod(version + 31 * row + 7 * column, 13);
      if (!placement.equals("P")) {
        return whole;
      }
      return rank == first ? whole - (ranks - 1) : 1;
    }
  }

  private void transfer(Communicator comm) {
    Random random = new Random(seed);
    Side from = Side.random(comm.size(), random, true);
    Side to = Side.random(comm.size(), random, false);
    TransferMode mode = TransferMode.values()[random.nextInt(TransferMode.values().length)];
    int rank = comm.rank();
    Tensor source = from.tensor(rank, DType.F32);
    Tensor target = to.tensor(rank, DType.BF16);
    if (source != null) {
      write(source, i -> from.value(rank, i, number));
    }
    Batch batch = Batch.of(comm).mode(mode).bucketBytes(1 + random.nextInt(4096));
    long[] shape = {ROWS, COLUMNS};
    batch.add(
        org.windlass.layout.TensorSpec.of("t", DType.F32, from.layout(), shape),
        source,
        org.windlass.layout.TensorSpec.of("t", DType.BF16, to.layout(), shape),
        target);
    try (Transfer transfer = batch.register()) {
      transfer.run(1);
    }
    if (target != null) {
      check(comm, target, i -> to.value(rank, i, number));
    }
  }

  private void link(Communicator comm) {
    Random random = new Random(seed);
    int n = comm.size();
    Side from = Side.random(n, random, true);
    Side to = Side.random(n, random, false);
    boolean inPlace = random.nextInt(3) == 0;
    boolean checked = random.nextBoolean();
    int rank = comm.rank();
    DeviceMesh senders = from.layout().mesh();
    DeviceMesh receivers = to.layout().mesh();
    try (Link link = Link.open(comm, "weights-" + number, senders, receivers)) {
      if (link == null) {
        return;
      }
      LinkBatch batch = link.batch();
      batch = inPlace ? batch.inPlace() : batch;
      batch = checked ? batch.checksums() : batch;
      Tensor source = from.tensor(rank, DType.F32);
      long[] shape = {ROWS, COLUMNS};
      if (link.sends()) {
        batch.add("w", shape, source, from.layout());
      }
      if (link.receives()) {
        batch.into("w", shape, to.tensor(rank, DType.F32), to.layout());
      }
      try (LinkTransfer transfer = batch.register()) {
        for (long version = 1; version <= 3; version++) {
          long now = version;
          if (source != null) {
            write(source, i -> from.value(rank, i, now));
          }
          if (link.sends()) {
            transfer.send(version);
          } else {
            transfer.receive(Duration.ofSeconds(30));
          }
          if (link.receives()) {
            check(comm, transfer.tensor("w"), i -> to.value(rank, i, now));
          }
        }
      }
    }
  }

  private void split(Communicator comm) {
    int parts = 1 + (int) Math.floorMod(seed, 3L);
    try (Communicator part = comm.split(comm.rank() % parts, -comm.rank())) {
      for (Step step : inner) {
        step.run(part);
      }
    }
  }

  @Override
  public String toString() {
    String what = number + " " + kind;
    return switch (kind) {
      case BARRIER -> what;
      case SPLIT -> what + inner;
      case TRANSFER, LINK -> what + "(seed " + seed + ")";
      default ->
          "%s(%d x %s, root %d, %s, %s, %s)"
              .formatted(what, count, dtype, root, op, algorithm, plain ? "plain" : "window");
    };
  }
}
