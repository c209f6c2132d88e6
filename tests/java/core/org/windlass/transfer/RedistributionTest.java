// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.MemoryPool;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.internal.Shapes;
import org.windlass.kernel.Target;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.plan.TransferMode;
import org.windlass.testing.DistributionReference;
import org.windlass.testing.Launch;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Ranks;
import org.windlass.testing.ScalarReference;
import org.windlass.testing.Ucx;

/**
 * Transfers of random tensors between random layouts, through the native library, bit for bit
 * against {@link DistributionReference} and {@link ScalarReference}: in transfers of all modes and
 * of buckets of any size, on strided views, of memory pools or not, padded or not, with casts and
 * Partial. 600 tensors as threads; 20,000 where the system property {@code windlass.long} is
 * true; some in each launch.
 */
class RedistributionTest {
  private static final int BATCHES_A_TRY = Boolean.getBoolean("windlass.long") ? 10 : 1;
  static final int TENSORS_A_BATCH = 20;

  /** Ranks of a transfer's largest mesh, by chance: meshes lie apart, so that groups are larger. */
  private static final int[] MESHES = {3, 4, 7, 16};

  private static final List<DType> FLOAT8 = List.of(DType.F8E4M3, DType.F8E5M2);

  /** That the target takes. */
  private static final int MOST_RANKS = Target.loaded() == Target.SIM ? 1024 : 64;

  /** Stands for the number of an element that is none. */
  private static final long PADDING = -1;

  /** Those that the target casts. */
  private static final List<DType> FLOATS =
      switch (Target.loaded()) {
        case A2A3SIM -> List.of(DType.F32, DType.F16, DType.BF16);
        case A5SIM -> List.of(DType.F32, DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2);
        default ->
            List.of(DType.F64, DType.F32, DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2);
      };

  @RandomSeeds(value = 30, inLong = 100)
  void everyTargetByteIsWhatTheReferenceSays(long seed) {
    for (int builder = 0; builder < BATCHES_A_TRY; builder++) {
      checkBatch(seed + builder, Launch.THREADS);
    }
  }

  @RandomSeeds(value = 3, inLong = 100)
  @Timeout(180)
  void theSameWhereRanksAreProcesses(long seed) {
    checkBatch(seed, Launch.PROCESSES);
  }

  @RandomSeeds(value = 3, inLong = 100)
  @Timeout(180)
  void theSameWhereRanksLiveInTwoProcesses(long seed) {
    checkBatch(seed, Launch.BOTH);
  }

  @RandomSeeds(value = 3, inLong = 100)
  @Timeout(180)
  void theSameWhereRanksLiveOnTwoHosts(long seed) {
    Ucx.require();
    checkBatch(seed, Launch.HOSTS);
  }

  /** On whichever target this process runs. */
  static void checkBatch(long seed, Launch launch) {
    checkBatch(seed, launch, MOST_RANKS);
  }

  /** {@link #checkBatch(long, Launch)} of no more than {@code mostRanks} ranks. */
  static void checkBatch(long seed, Launch launch, int mostRanks) {
    int most = Math.min(launch.most(), mostRanks);
    boolean isWhole = launch == Launch.THREADS;
    Ranks.atLeast(launch, Cases.of(seed, most).ranks())
        .run(comm -> redistribute(comm, Cases.of(seed, most).tensors, seed, isWhole));
  }

  /** The tensors of a transfer. */
  private record Cases(long seed, int most, List<Case> tensors) {
    /** Those of the last transfer, which the ranks of a process have in common. */
    private static Cases last;

    static synchronized Cases of(long seed, int most) {
      if (last == null || last.seed != seed || last.most != most) {
        Random random = new Random(seed);
        RandomLayouts layouts = new RandomLayouts(random.nextLong(), MESHES[random.nextInt(4)]);
        List<Case> tensors = new ArrayList<>();
        while (tensors.size() < TENSORS_A_BATCH) {
          Case next = Case.random("t" + tensors.size(), random, layouts);
          if (next.ranks() <= most) {
            tensors.add(next);
          }
        }
        last = new Cases(seed, most, tensors);
      }
      return last;
    }

    int ranks() {
      return tensors.stream().mapToInt(Case::ranks).max().orElseThrow();
    }
  }

  /** @param isWhole whether all ranks live in this process, of whose ranks progress tells */
  private static void redistribute(
      Communicator communicator, List<Case> cases, long seed, boolean isWhole) {
    int rank = communicator.rank();
    Random random = new Random(seed + rank);
    TransferBuilder builder = TransferBuilder.of(communicator);
    List<Tensor> sources = new ArrayList<>();
    List<Tensor> targets = new ArrayList<>();
    MemoryPool pool = communicator.memoryPool(1 << 30);
    for (Case each : cases) {
      sources.add(view(each.from, rank, random, pool));
      targets.add(view(each.to, rank, random, pool));
      if (each.wire != null) {
        builder.defaultWire(each.wire);
      } else {
        builder.defaultWire(Plan.defaultWire(each.from.dtype(), each.to.dtype()));
      }
      builder
          .defaultMode(each.mode)
          .defaultBucketBytes(each.bucketBytes)
          .add(
              each.from,
              BoundViews.of(sources.get(sources.size() - 1)),
              each.to,
              BoundViews.of(targets.get(targets.size() - 1)));
    }
    long staging = builder.stagingBytes();
    try (Transfer transfer = builder.register()) {
      assertThat(transfer.stagingBytes()).isEqualTo(staging);
      for (int version = 1; version <= 2; version++) {
        for (int i = 0; i < cases.size(); i++) {
          write(sources.get(i), cases.get(i).sourceBits(rank, version));
          write(targets.get(i), dirt(targets.get(i)));
        }
        transfer.run(version);
        communicator.barrier(); // no rank has begun another run
        if (isWhole) {
          assertThat(transfer.progress().bytes()).isEqualTo(transfer.totalBytes());
        }
        communicator.barrier();
        for (int i = 0; i < cases.size(); i++) {
          check(cases.get(i), targets.get(i), rank, version);
        }
      }
    }
    Stream.concat(sources.stream(), targets.stream())
        .filter(Objects::nonNull)
        .forEach(Tensor::close);
    assertThat(pool.used()).isZero();
    pool.close();
  }

  private static void check(Case each, Tensor target, int rank, int version) {
    if (target == null) {
      return;
    }
    long[] expected = each.targetBits(rank, version);
    long[] actual = read(target);
    for (int i = 0; i < expected.length; i++) {
      if (expected[i] != actual[i]) {
        throw new AssertionError(
            String.format(
                "%s: rank %d, local element %d: expected %x, found %x",
                each, rank, i, expected[i], actual[i]));
      }
    }
  }

  /**
   * This rank's local tensor, at random contiguous, transposed, or cut from a larger one; null
   * outside the mesh.
   */
  private static Tensor view(TensorSpec spec, int rank, Random random, MemoryPool pool) {
    if (!spec.layout().mesh().contains(rank)) {
      return null;
    }
    long[] shape = spec.localShape(rank);
    int kind = random.nextInt(3);
    Allocator allocator = random.nextBoolean() ? pool::allocate : Tensor::allocate;
    if (shape.length == 0 || kind == 0) {
      return allocator.allocate(spec.dtype(), shape);
    }
    int dim = random.nextInt(shape.length);
    if (kind == 1) {
      int other = random.nextInt(shape.length);
      return allocator
          .allocate(spec.dtype(), Shapes.swapped(shape, dim, other))
          .transpose(dim, other);
    }
    long[] larger = shape.clone();
    larger[dim] += 3;
    return allocator.allocate(spec.dtype(), larger).narrow(dim, 2, shape[dim]);
  }

  /** Where a tensor's memory comes from. */
  @FunctionalInterface
  private interface Allocator {
    Tensor allocate(DType dtype, long... shape);
  }

  private static long[] dirt(Tensor tensor) {
    long[] ones = new long[tensor == null ? 0 : Math.toIntExact(tensor.numel())];
    Arrays.fill(ones, -1);
    return ones;
  }

  private static void write(Tensor tensor, long[] bits) {
    if (tensor != null && tensor.numel() != 0) {
      Tensor dense = Tensor.allocate(tensor.dtype(), tensor.shape());
      ByteBuffer bytes = dense.asByteBuffer();
      for (long element : bits) {
        switch (tensor.dtype().bytes()) {
          case 1 -> bytes.put((byte) element);
          case 2 -> bytes.putShort((short) element);
          case 4 -> bytes.putInt((int) element);
          default -> bytes.putLong(element);
        }
      }
      tensor.copyFrom(dense);
    }
  }

  private static long[] read(Tensor tensor) {
    Tensor dense = Tensor.allocate(tensor.dtype(), tensor.shape()).copyFrom(tensor);
    ByteBuffer bytes = dense.asByteBuffer();
    long[] bits = new long[Math.toIntExact(tensor.numel())];
    for (int i = 0; i < bits.length; i++) {
      bits[i] =
          switch (tensor.dtype().bytes()) {
            case 1 -> bytes.get() & 0xffL;
            case 2 -> bytes.getShort() & 0xffffL;
            case 4 -> bytes.getInt() & 0xffffffffL;
            default -> bytes.getLong();
          };
    }
    return bits;
  }

  private record Case(
      TensorSpec from, TensorSpec to, DType wire, TransferMode mode, long bucketBytes, long salt) {
    /** One more than the highest that it names. */
    int ranks() {
      return 1
          + Math.max(
              from.layout().mesh().highestRank(), to.layout().mesh().highestRank());
    }

    static Case random(String name, Random random, RandomLayouts layouts) {
      while (true) {
        long[] shape = layouts.shape(5, 300);
        DType from = DType.values()[random.nextInt(DType.C64.ordinal() + 1)];
        boolean cast = FLOATS.contains(from) && random.nextBoolean();
        DType to = cast ? FLOATS.get(random.nextInt(FLOATS.size())) : from;
        DType wire =
            FLOATS.contains(from) && random.nextBoolean()
                ? FLOATS.get(random.nextInt(FLOATS.size()))
                : null;
        TransferMode mode = TransferMode.values()[random.nextInt(3)];
        long bucketBytes = List.of(1L, 7L, 64L, 300L, 5000L, 1L << 40).get(random.nextInt(6));
        TensorSpec source = layouts.spec(name, from, true, shape);
        TensorSpec target = layouts.spec(name, to, false, shape);
        if (source.layout().partialOp().map(op -> canReduce(from, op)).orElse(true)) {
          return new Case(source, target, wire, mode, bucketBytes, random.nextLong());
        }
      }
    }

    private static boolean canReduce(DType dtype, ReduceOp op) {
      boolean isLacking =
          Target.loaded() != Target.SIM
              && (dtype.bits() == 64 || FLOAT8.contains(dtype) && !FLOATS.contains(dtype));
      return dtype.canReduce(op) && !isLacking;
    }

    /** The bits of one term of a global element: every pattern occurs, special values often. */
    private long bits(long index, int term, int version) {
      Random random =
          new Random(salt ^ (index * 0x9e3779b97f4a7c15L + term * 0x632be59bd9b4e019L + version));
      random.nextLong();
      DType dtype = from.dtype();
      if (dtype == DType.BOOL) {
        return random.nextInt(2);
      }
      long mask = -1L >>> (64 - dtype.bits());
      if (FLOATS.contains(dtype)) {
        switch (random.nextInt(8)) {
          case 0:
            return random.nextLong() & mask;
          case 1:
            double[] special = {
              0.0, -0.0, Double.NaN, Double.POSITIVE_INFINITY, 1e-40, 448, 65504, -1e300
            };
            return ScalarReference.encode(dtype, special[random.nextInt(special.length)]);
          default:
            return ScalarReference.encode(
                dtype, random.nextGaussian() * Math.scalb(1.0, random.nextInt(12) - 6));
        }
      }
      return random.nextLong() & mask;
    }

    long[] sourceBits(int rank, int version) {
      if (!from.layout().mesh().contains(rank)) {
        return new long[0];
      }
      int term = DistributionReference.group(from.layout(), rank).indexOf(rank);
      return indices(from, rank).stream().mapToLong(i -> bits(i, term, version)).toArray();
    }

    long[] targetBits(int rank, int version) {
      int terms =
          DistributionReference.group(from.layout(), from.layout().mesh().rankAtPlace(0)).size();
      DType on = wire != null ? wire : Plan.defaultWire(from.dtype(), to.dtype());
      return indices(to, rank).stream()
          .mapToLong(
              index -> {
                if (index == PADDING) {
                  return 0;
                }
                long[] values = new long[terms];
                Arrays.setAll(values, term -> bits(index, term, version));
                ReduceOp op = from.layout().partialOp().orElse(ReduceOp.SUM);
                long value = ScalarReference.fold(from.dtype(), op, values);
                value = ScalarReference.cast(from.dtype(), on, value);
                return ScalarReference.cast(on, to.dtype(), value);
              })
          .toArray();
    }

    /** Row-major global numbers of the elements that a rank holds, or PADDING, in local order. */
    private static List<Long> indices(TensorSpec spec, int rank) {
      long[] shape = spec.extents();
      List<List<Long>> held =
          DistributionReference.held(spec.layout(), rank, spec.paddedExtents());
      List<Long> numbers = List.of(0L);
      for (int d = 0; d < shape.length; d++) {
        List<Long> longer = new ArrayList<>();
        for (long number : numbers) {
          for (long index : held.get(d)) {
            boolean real = number != PADDING && index < shape[d];
            longer.add(real ? number * shape[d] + index : PADDING);
          }
        }
        numbers = longer;
      }
      return numbers;
    }
  }
}
