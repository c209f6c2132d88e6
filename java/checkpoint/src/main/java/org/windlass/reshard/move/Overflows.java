// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.reshard.check.Doubts;
import org.windlass.reshard.check.LostValues;
import org.windlass.reshard.tensor.Casts;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Finds large tensors with values that a cast to a dtype of a smaller range makes infinite or the
 * largest finite value.
 *
 * <p>Threads check values as they write them, while the values are in the CPU's caches. Only a
 * tensor with such values is then compared with its source. {@link LostValues} checks small
 * tensors.
 */
public final class Overflows {
  private static final int CHUNK = 65_536;

  /**
   * Upper limit of the factor by which rounding in a cast changes a value. The coarsest dtype,
   * f8e5m2, has two bits of mantissa.
   */
  private static final double ROUNDED = 1.13;

  /** Looks in the written values for those that may come from an overflow. */
  static final class Watch {
    private static final int WORDS = 1024;
    private static final int STRIDE = 8;

    private static final ThreadLocal<long[]> READ = ThreadLocal.withInitial(() -> new long[WORDS]);

    /** Mask of a word's bits without signs, and a word with the wanted magnitude per element. */
    private final long magnitudes;

    private final long sought;
    private volatile boolean isFound;

    Watch(DType dtype, double value) {
      Tensor one = Tensor.allocate(dtype, 1);
      one.setDouble(value, 0);
      int bits = dtype.bits();
      long code = bits(bytes(one), dtype);
      long ones = bits == Long.SIZE ? 1 : Long.divideUnsigned(-1, (1L << bits) - 1);
      magnitudes = ~(ones << bits - 1);
      sought = ones * code;
    }

    boolean isFound() {
      return isFound;
    }

    private static long bits(ByteBuffer bytes, DType dtype) {
      long bits = 0;
      for (int i = 0; i < dtype.bytes(); i++) {
        bits |= (bytes.get(i) & 0xffL) << i * Byte.SIZE;
      }
      return bits;
    }

    /** Checks the elements of a buffer, which starts at the first byte of an element. */
    void look(ByteBuffer bytes) {
      ByteBuffer rest = bytes.duplicate().order(ByteOrder.LITTLE_ENDIAN);
      LongBuffer all = rest.asLongBuffer();
      long[] words = READ.get();
      while (all.hasRemaining() && !isFound) {
        int count = Math.min(all.remaining(), WORDS);
        all.get(words, 0, count);
        look(words, count);
      }
      rest.position(rest.limit() / Long.BYTES * Long.BYTES);
      words[0] = 0;
      for (int shift = 0; rest.hasRemaining(); shift += Byte.SIZE) {
        words[0] |= (rest.get() & 0xffL) << shift;
      }
      look(words, 1);
    }

    private void look(long[] words, int count) {
      int filled = (count + STRIDE - 1) / STRIDE * STRIDE;
      Arrays.fill(words, count, filled, 0);
      // The flag is only set, never cleared: another thread may set it between a read and a write
      // here.
      if (isIn(words, filled)) {
        isFound = true;
      }
    }

    /**
     * Returns whether an element has the magnitude to find. The difference of any other magnitude
     * carries into the sign bit. The loop is written out because the compiler that runs reshards
     * does not unroll it.
     */
    private boolean isIn(long[] words, int count) {
      long low = magnitudes;
      long code = sought;
      long even = -1;
      long odd = -1;
      for (int i = 0; i < count; i += STRIDE) {
        even &= ((words[i] & low) ^ code) + low;
        odd &= ((words[i + 1] & low) ^ code) + low;
        even &= ((words[i + 2] & low) ^ code) + low;
        odd &= ((words[i + 3] & low) ^ code) + low;
        even &= ((words[i + 4] & low) ^ code) + low;
        odd &= ((words[i + 5] & low) ^ code) + low;
        even &= ((words[i + 6] & low) ^ code) + low;
        odd &= ((words[i + 7] & low) ^ code) + low;
      }
      return (even & odd | low) != -1;
    }
  }

  private final Checkpoint in;
  private final List<TensorMove> moves = new ArrayList<>();
  private final Map<TargetTensor, Watch> watches = new LinkedHashMap<>();

  /** Selects the moves to check: those of large tensors that are cast to a smaller range. */
  public Overflows(Checkpoint in, List<TensorMove> all) {
    this.in = in;
    for (TensorMove move : all) {
      DType narrowest = Casts.narrowest(move);
      // The ranges of the two dtypes differ by less than 1 %.
      boolean isEqual = narrowest == DType.BF16 && move.source().dtype() == DType.F32;
      if (!LostValues.has(move) && Casts.shrink(move) && !isEqual) {
        moves.add(move);
        double value =
            narrowest == DType.F8E4M3 ? Casts.largest(narrowest) : Double.POSITIVE_INFINITY;
        watches.computeIfAbsent(
            move.target(), target -> new Watch(target.dtype(), value));
      }
    }
  }

  /** Returns the watch for a target, or null if its values can't overflow. */
  @Nullable Watch watch(TargetTensor target) {
    return watches.get(target);
  }

  /** Collects the overflowed tensors that all processes found. Every rank calls it. */
  void share(Team team, Communicator comm) {
    if (team.isWhole() || watches.isEmpty()) {
      return;
    }
    int[] all = watches.values().stream().mapToInt(watch -> watch.isFound ? 1 : 0).toArray();
    Tensor found = Tensor.allocate(DType.I32, all.length).copyFrom(all);
    comm.withDeadline(Team.NO_LIMIT).allReduce(found, ReduceOp.SUM);
    found.copyTo(all);
    int i = 0;
    for (Watch watch : watches.values()) {
      watch.isFound |= all[i++] > 0;
    }
  }

  /**
   * Compares the tensors that may have overflowed with their sources, and reports lost values.
   *
   * @param check throws an exception if the run must end
   */
  public void tell(Consumer<String> warnings, Runnable check) {
    Map<String, List<String>> names = new LinkedHashMap<>();
    Map<String, Long> counts = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      if (!Objects.requireNonNull(watches.get(move.target())).isFound) {
        continue;
      }
      SourceTensor source = move.source();
      String kind =
          " larger than " + Casts.narrowest(move) + " has them; a rule with \"dtype\": \""
              + source.dtype() + "\", and no wire, keeps them";
      long count = source.from().hasPartial() ? 0 : count(move, check);
      if (count > 0 || source.from().hasPartial()) {
        names.computeIfAbsent(kind, key -> new ArrayList<>()).add(source.name());
        counts.merge(kind, count, Long::sum);
      }
    }
    names.forEach(
        (kind, of) -> {
          long count = counts.getOrDefault(kind, 0L);
          warnings.accept(
              Doubts.listed(of) + ": "
                  + (count == 0
                      ? "sums may be"
                      : count == 1
                          ? "one value is"
                          : String.format(Locale.ROOT, "%,d values are", count))
                  + kind);
        });
  }

  private long count(TensorMove move, Runnable check) {
    SourceTensor source = move.source();
    if (!in.byRank()) {
      return count(move, in.whole(source.stored()), check);
    }
    long count = 0;
    Set<List<List<Runs.Run>>> pieces = new HashSet<>();
    for (int rank : source.from().mesh().ranks()) {
      if (pieces.add(source.held(rank).dims())) {
        count += count(move, Objects.requireNonNull(in.ranks().get(rank)), check);
      }
    }
    return count;
  }

  private static long count(TensorMove move, SafetensorsFile file, Runnable check) {
    DType dtype = move.source().dtype();
    String name = move.source().stored();
    long elements = TargetTensor.elements(file.entry(name).dims());
    long count = 0;
    for (long first = 0; first < elements; first += CHUNK) {
      check.run();
      int length = (int) Math.min(CHUNK, elements - first);
      Tensor stored = Tensor.allocate(dtype, length);
      file.read(name, first * dtype.bytes(), bytes(stored));
      Tensor sent = Tensor.allocate(move.wire().orElse(dtype), length).copyFrom(stored);
      Tensor written = Tensor.allocate(move.target().dtype(), length).copyFrom(sent);
      double[] was = doubles(stored);
      double[] is = doubles(written);
      for (int i = 0; i < length; i++) {
        double now = Math.abs(is[i]);
        boolean isOther = Double.isInfinite(now) || now > 1 && Math.abs(was[i]) > ROUNDED * now;
        count += isOther && Double.isFinite(was[i]) ? 1 : 0;
      }
    }
    return count;
  }

  private static double[] doubles(Tensor tensor) {
    Tensor wide = Tensor.allocate(DType.F64, tensor.shape()).copyFrom(tensor);
    double[] values = new double[(int) tensor.numel()];
    wide.copyTo(values);
    return values;
  }

  private static ByteBuffer bytes(Tensor tensor) {
    return Tensor.of(tensor.address(), tensor.bytes(), tensor, DType.U8, tensor.bytes())
        .asByteBuffer();
  }
}
