// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

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
    ALL_GATHER_COLUMNS,
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
      case BARRIER ->
          new Step(number, Kind.ALL_REDUCE, dtype, 4, root, op, algorithm, plain, seed, inner);
      case PUT, ACCUMULATE, TRANSFER, LINK, SPLIT ->
          new Step(number, Kind.BARRIER, dtype, count, root, op, algorithm, plain, seed, inner);
      default -> new Step(number, kind, dtype, count + 1, root, op, algorithm, plain, seed, inner);
    };
  }

  /** Whether the library may take this step of one rank and that of another for one operation. */
  boolean isLike(Step other) {
    return kind == other.kind && dtype == other.dtype && count == other.count;
  }

  /** Whether what is plain lies in a memory pool. */
  boolean isPooled() {
    return plain && seed % 2 == 0;
  }

  /** Element {@code index} of a rank's input. */
  double value(int rank, long index) {
    return Math.floorMod(number * 31L + rank * 7L + index * 17, 13);
  }

  /** Runs the step as the communicator's rank, and compares what it gives. */
  void run(Communicator comm) {
    switch (kind) {
      case BARRIER -> comm.barrier();
      case PUT -> new OneSidedStep(this, comm).put();
      case ACCUMULATE -> new OneSidedStep(this, comm).accumulate();
      case TRANSFER -> new RedistributionStep(this, comm).transfer();
      case LINK -> new RedistributionStep(this, comm).link();
      case SPLIT -> split(comm);
      default -> new CollectiveStep(this, comm).run();
    }
  }

  interface Values {
    double at(long index);
  }

  static void write(Tensor tensor, Values values) {
    double[] all = new double[(int) tensor.numel()];
    for (int i = 0; i < all.length; i++) {
      all[i] = values.at(i);
    }
    tensor.copyFrom(all);
  }

  static double[] read(Tensor tensor) {
    double[] all = new double[(int) tensor.numel()];
    tensor.copyTo(all);
    return all;
  }

  /** Throws where a tensor is not what it should be. */
  void check(Communicator comm, Tensor tensor, Values expected) {
    double[] got = read(tensor);
    for (int i = 0; i < got.length; i++) {
      if (got[i] != expected.at(i)) {
        throw new WrongData(this, comm.rank(), i, got[i], expected.at(i));
      }
    }
  }

  /** An operation that returned Ok and gave something else than it should. */
  static final class WrongData extends AssertionError {
    static final long serialVersionUID = 1L;

    WrongData(Step step, int rank, long index, double got, double wanted) {
      super(
          "%s: rank %d has %s at element %d; it should be %s"
              .formatted(step, rank, got, index, wanted));
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
              .formatted(what, count, dtype, root, op, algorithm, isPooled() ? "pool" : plain ? "plain" : "window");
    };
  }
}
