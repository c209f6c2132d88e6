// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.reshard.tensor.Casts;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Finds small tensors whose values a cast would destroy. It reports a tensor if most values become
 * equal, which can happen to a router's biases. It also reports values outside the range of the
 * dtype, and a count (such as of steps) that becomes another number.
 *
 * <p>Most values become equal if a cast leaves at most a tenth of the distinct values, and fewer
 * than {@link #FEW}. Larger tensors are checked by {@link org.windlass.reshard.move.Overflows}.
 */
public final class LostValues {
  /** Most elements of a tensor that is checked here. Larger tensors are checked while they move. */
  private static final int MOST_ELEMENTS = 65_536;

  private static final int KEPT = 10;
  private static final int FEW = 64;
  private static final int CHUNK = 1024;

  /**
   * Upper limit of the factor by which rounding in a cast changes a value. The coarsest dtype,
   * f8e5m2, has two bits of mantissa.
   */
  private static final double ROUNDED = 1.13;

  private final Checkpoint in;
  private final Doubts doubts = new Doubts();
  private final Different before = new Different(KEPT * FEW);
  private final Different after = new Different(FEW);

  private final Tensor memory = Tensor.allocate(DType.U8, (long) MOST_ELEMENTS * Long.BYTES);

  private final ByteBuffer stored = bytes(memory);
  private final long[] words = new long[MOST_ELEMENTS];

  private LostValues(Checkpoint in) {
    this.in = in;
  }

  /** Counts the different numbers among those added, up to a limit. */
  private static final class Different {
    private final int limit;
    private final long[] table;
    private final boolean[] isTaken;
    private int count;

    Different(int limit) {
      this.limit = limit;
      table = new long[Integer.highestOneBit(limit) * 4];
      isTaken = new boolean[table.length];
    }

    void clear() {
      count = 0;
      Arrays.fill(isTaken, false);
    }

    boolean isFull() {
      return count == limit;
    }

    void add(long number) {
      int at = Long.hashCode(number * 0x9E3779B97F4A7C15L) & table.length - 1;
      while (isTaken[at] && table[at] != number) {
        at = at + 1 & table.length - 1;
      }
      if (!isTaken[at] && !isFull()) {
        isTaken[at] = true;
        table[at] = number;
        count++;
      }
    }
  }

  /**
   * Returns whether a tensor is small enough to be checked before anything moves. A Partial tensor
   * is not, because its sum is known only after the move.
   */
  public static boolean has(TensorMove move) {
    return TargetTensor.elements(move.source().shape()) <= MOST_ELEMENTS
        && !move.source().from().hasPartial()
        && move.source().division().isPlain()
        && !move.source().division().isPadded(move.source().shape());
  }

  /**
   * Reads the tensors that are cast to a dtype of a smaller range, even if only on the wire, and
   * reports lost values.
   */
  public static void look(Checkpoint in, List<TensorMove> moves, Consumer<String> warnings) {
    List<TensorMove> casts =
        moves.stream().filter(move -> has(move) && Casts.shrink(move)).toList();
    if (!casts.isEmpty()) {
      LostValues lost = new LostValues(in);
      casts.forEach(lost::look);
      lost.doubts.tell(warnings);
    }
  }

  private void look(TensorMove move) {
    SourceTensor tensor = move.source();
    DType wire = move.wire().orElse(tensor.dtype());
    DType to = move.target().dtype();
    DType narrowest = Casts.narrowest(move);
    int elements = (int) TargetTensor.elements(tensor.shape());
    stored.clear();
    if (in.byRank()) {
      readParts(tensor);
    }
    DType dtype = tensor.dtype();
    DType shorter = to.bits() < dtype.bits() ? to : narrowest;
    String lost = null;
    if (isTooLarge(tensor, wire, to, Casts.largest(narrowest), elements)) {
      lost = "values are larger than " + narrowest + " has them";
    } else if (elements == 1 && isOtherCount(dtype, wire, to)) {
      lost = "one whole number, such as a count of steps, which becomes another as " + shorter;
    } else if (leavesFew(tensor, wire, to, elements)) {
      lost = "under a tenth of the different values are left as " + shorter;
    }
    if (lost != null) {
      String remedy = "; a rule with \"dtype\": \"" + dtype + "\", and no wire, keeps them";
      doubts.add(tensor.name(), lost + remedy);
    }
  }

  private void readParts(SourceTensor tensor) {
    Set<List<List<Runs.Run>>> parts = new HashSet<>();
    for (int rank : tensor.from().mesh().ranks()) {
      if (parts.add(tensor.held(rank).dims())) {
        SafetensorsFile file = Objects.requireNonNull(in.ranks().get(rank));
        stored.limit(stored.position() + (int) file.entry(tensor.stored()).bytes());
        file.read(tensor.stored(), 0, stored);
      }
    }
  }

  private void read(SourceTensor tensor, int elements) {
    int bytes = elements * tensor.dtype().bytes();
    if (stored.position() < bytes) {
      stored.limit(bytes);
      in.whole(tensor.stored()).read(tensor.stored(), stored.position(), stored);
    }
  }

  /**
   * Returns whether a cast exceeds the range of the target dtype for some value. Casts keep the
   * order of values, so only the largest value matters.
   */
  private boolean isTooLarge(
      SourceTensor tensor, DType wire, DType to, double limit, int elements) {
    DType dtype = tensor.dtype();
    if (dtype == DType.F32 && limit == Casts.largest(DType.BF16) && elements > CHUNK) {
      return false;
    }
    read(tensor, elements);
    if (!reaches(dtype, limit)) {
      return false;
    }
    double most = 0;
    int at = 0;
    for (int i = 0; i < elements; i++) {
      double value = Math.abs(stored(dtype, i, 1).getDouble(0));
      if (Double.isFinite(value) && value > most) {
        most = value;
        at = i;
      }
    }
    double now = Math.abs(cast(dtype, wire, to, at, 1).getDouble(0));
    return most > 0 && (!Double.isFinite(now) || now > 1 && most > ROUNDED * now);
  }

  /**
   * Returns whether an element that was read is at least {@code limit} in magnitude, or not finite.
   *
   * <p>Magnitudes compare as their bits do. Each step compares all elements in a word of 64 bits.
   * It adds a constant to each magnitude, so that values from the limit on carry into the sign bit.
   */
  private boolean reaches(DType dtype, double limit) {
    Tensor one = Tensor.allocate(dtype, 1);
    one.setDouble(limit, 0);
    int width = dtype.bits();
    long ones = width == Long.SIZE ? 1 : Long.divideUnsigned(-1, (1L << width) - 1);
    long signs = ones << width - 1;
    long carry = ones * ((1L << width - 1) - bits(bytes(one), dtype, 0));
    while (stored.position() % Long.BYTES != 0) {
      stored.limit(stored.capacity()).put((byte) 0);
    }
    int count = stored.position() / Long.BYTES;
    stored.duplicate().order(ByteOrder.LITTLE_ENDIAN).flip().asLongBuffer().get(words, 0, count);
    long carried = 0;
    for (int i = 0; i < count; i++) {
      carried |= (words[i] & ~signs) + carry;
    }
    return (carried & signs) != 0;
  }

  private boolean isOtherCount(DType dtype, DType wire, DType to) {
    double was = stored(dtype, 0, 1).getDouble(0);
    return was == Math.rint(was) && was != cast(dtype, wire, to, 0, 1).getDouble(0);
  }

  private boolean leavesFew(SourceTensor tensor, DType wire, DType to, int elements) {
    DType dtype = tensor.dtype();
    after.clear();
    for (int first = 0; first < elements && !after.isFull(); first += CHUNK) {
      int count = Math.min(CHUNK, elements - first);
      read(tensor, first + count);
      ByteBuffer bytes = bytes(cast(dtype, wire, to, first, count));
      for (int i = 0; i < count; i++) {
        after.add(bits(bytes, to, i));
      }
    }
    if (after.isFull()) {
      return false;
    }
    before.clear();
    int most = KEPT * after.count;
    for (int i = 0; i < elements && before.count <= most; i++) {
      before.add(bits(stored, dtype, i));
    }
    return before.count > most;
  }

  private Tensor stored(DType dtype, int first, int count) {
    long offset = (long) first * dtype.bytes();
    return Tensor.of(
        memory.address() + offset, memory.bytes() - offset, memory, dtype, count);
  }

  /** Returns {@code count} elements from index {@code first} on, as they will be written. */
  private Tensor cast(DType dtype, DType wire, DType to, int first, int count) {
    Tensor sent = Tensor.allocate(wire, count).copyFrom(stored(dtype, first, count));
    return Tensor.allocate(to, count).copyFrom(sent);
  }

  /** Returns a buffer over a tensor's memory. */
  public static ByteBuffer bytes(Tensor tensor) {
    return Tensor.of(tensor.address(), tensor.bytes(), tensor, DType.U8, tensor.bytes())
        .asByteBuffer()
        .order(ByteOrder.LITTLE_ENDIAN);
  }

  private static long bits(ByteBuffer bytes, DType dtype, int index) {
    return switch (dtype.bytes()) {
      case 1 -> bytes.get(index);
      case 2 -> bytes.getShort(2 * index);
      case 4 -> bytes.getInt(4 * index);
      default -> bytes.getLong(8 * index);
    };
  }
}
