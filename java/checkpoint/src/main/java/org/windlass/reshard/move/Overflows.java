// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.stream.IntStream;
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
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Finds tensors with values that a cast to a dtype of a smaller range makes infinite or the largest
 * finite value.
 *
 * <p>Threads check values as they write them, while the values are in the CPU's caches. Afterwards,
 * only a tensor with such values is compared with its source.
 */
public final class Overflows {
  private static final int CHUNK = 65_536;

  /** Looks for written values that may come from an overflow. */
  static final class Watch {
    private static final int WORDS = 1024;
    private static final int STRIDE = 8;

    private static final ThreadLocal<long[]> READ = ThreadLocal.withInitial(() -> new long[WORDS]);

    /** Words whose elements all have one value, keyed by dtype and value. */
    private static final Map<List<Object>, Long> FILLED = new ConcurrentHashMap<>();

    /**
     * A mask of a word's bits without signs, and a word in which each element has the magnitude to
     * find.
     */
    private final long magnitudes;

    private final long sought;
    private volatile boolean isFound;

    Watch(DType dtype, double value) {
      magnitudes = ~word(dtype, -0.0);
      sought = word(dtype, value);
    }

    private static long word(DType dtype, double value) {
      return FILLED.computeIfAbsent(
          List.of(dtype, value),
          key ->
              LostValues.bytes(Tensor.allocate(dtype, Long.BYTES / dtype.bytes()).fill(value))
                  .getLong(0));
    }

    boolean isFound() {
      return isFound;
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
     * Returns whether an element has the magnitude to find. For any other magnitude, the difference
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
  private final List<TensorMove> moves;
  /** Watches, keyed by the name of the target. */
  private final Map<String, Watch> watches = new LinkedHashMap<>();

  /** Selects the moves to check: those that cast to a smaller range. */
  public Overflows(Checkpoint in, List<TensorMove> all) {
    this.in = in;
    moves = all.stream().filter(LostValues::isWatched).toList();
    for (TensorMove move : moves) {
      DType narrowest = Casts.narrowest(move);
      double value =
          narrowest == DType.F8E4M3 ? Casts.largest(narrowest) : Double.POSITIVE_INFINITY;
      watches.computeIfAbsent(
          move.target().name(), name -> new Watch(move.target().dtype(), value));
    }
  }

  /** Returns the watch for a target. Null if its values can't overflow. */
  @Nullable Watch watch(TargetTensor target) {
    return watches.get(target.name());
  }

  /**
   * Collects the names of the overflowed tensors that all processes have found. Every rank calls
   * it.
   */
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
    Map<String, Map<String, Long>> counts = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      SourceTensor source = move.source();
      boolean isSum = source.from().hasPartial();
      if (Objects.requireNonNull(watch(move.target())).isFound) {
        long count = isSum ? 0 : count(move, check);
        String kind =
            " larger than " + Casts.narrowest(move) + " has them; a rule with \"dtype\": \""
                + source.dtype() + "\", and no wire, keeps them";
        if (count > 0 || isSum) {
          counts.computeIfAbsent(kind, key -> new LinkedHashMap<>()).put(source.name(), count);
        }
      }
    }
    counts.forEach(
        (kind, of) -> {
          long count = of.values().stream().mapToLong(Long::longValue).sum();
          String what =
              count == 0
                  ? "sums may be"
                  : count == 1
                      ? "one value is"
                      : String.format(Locale.ROOT, "%,d values are", count);
          warnings.accept(Doubts.listed(List.copyOf(of.keySet())) + ": " + what + kind);
        });
  }

  private long count(TensorMove move, Runnable check) {
    long count = 0;
    for (SafetensorsFile file : LostValues.files(in, move.source())) {
      long elements = TargetTensor.elements(file.entry(move.source().stored()).dims());
      for (long first = 0; first < elements; first += CHUNK) {
        check.run();
        int length = (int) Math.min(CHUNK, elements - first);
        LostValues.Values values = LostValues.values(move, file, first, length);
        count += IntStream.range(0, length).filter(values::isBeyond).count();
      }
    }
    return count;
  }
}
