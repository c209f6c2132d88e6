// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
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
 * Finds small tensors whose values a cast would destroy. It reports a tensor if most of its values
 * become equal, which can happen to a router's biases. It also reports a count, such as a number of
 * steps, that becomes another number. Values outside the range of the dtype are checked by {@link
 * org.windlass.reshard.move.Overflows}.
 *
 * <p>Most values become equal if a cast leaves at most a tenth of the distinct values, and fewer
 * than {@link #FEW}.
 */
public final class LostValues {
  /** Largest number of elements of a tensor that is checked here. */
  private static final int MOST_ELEMENTS = 65_536;

  private static final int KEPT = 10;
  private static final int FEW = 64;
  private static final int CHUNK = 1024;

  /**
   * Upper limit of the factor by which rounding in a cast changes a value. It holds for the
   * coarsest dtype, f8e5m2, which has two bits of mantissa.
   */
  private static final double ROUNDED = 1.13;

  /** Holds elements of a tensor before and after the casts of a move. */
  public record Values(double[] before, double[] after) {
    /** Returns whether the casts put element {@code i} outside the range of a dtype. */
    public boolean isBeyond(int i) {
      double now = Math.abs(after[i]);
      return Double.isFinite(before[i])
          && (Double.isInfinite(now) || now > 1 && Math.abs(before[i]) > ROUNDED * now);
    }
  }

  private LostValues() {}

  /**
   * Reads the small tensors that are cast to a dtype of a smaller range, even if only on the wire,
   * and reports lost values. It does not read Partial tensors, whose sums are known only after the
   * move.
   */
  public static void look(Checkpoint in, List<TensorMove> moves, Consumer<String> warnings) {
    Doubts doubts = new Doubts();
    for (TensorMove move : moves) {
      SourceTensor source = move.source();
      if (TargetTensor.elements(source.shape()) <= MOST_ELEMENTS
          && !source.from().hasPartial()
          && source.division().isPlain()
          && !source.division().isPadded(source.shape())
          && Casts.shrink(move)) {
        look(in, move, doubts);
      }
    }
    doubts.tell(warnings);
  }

  private static void look(Checkpoint in, TensorMove move, Doubts doubts) {
    Set<Double> before = new HashSet<>();
    Set<Double> after = new HashSet<>();
    for (SafetensorsFile file : files(in, move.source())) {
      long elements = TargetTensor.elements(file.entry(move.source().stored()).dims());
      for (long first = 0; first < elements; first += CHUNK) {
        int count = (int) Math.min(CHUNK, elements - first);
        Values values = values(move, file, first, count);
        for (int i = 0; i < count; i++) {
          before.add(values.before()[i]);
          after.add(values.after()[i]);
          if (after.size() == FEW || values.isBeyond(i) && isWatched(move)) {
            return;
          }
        }
      }
    }
    DType dtype = move.source().dtype();
    DType to = move.target().dtype();
    DType shorter = to.bits() < dtype.bits() ? to : Casts.narrowest(move);
    boolean isCount =
        TargetTensor.elements(move.source().shape()) == 1
            && before.stream().allMatch(was -> was == Math.rint(was) && !after.contains(was));
    if (isCount || before.size() > KEPT * after.size()) {
      doubts.add(
          move.source().name(),
          (isCount
                  ? "one whole number, such as a count of steps, which becomes another as "
                  : "under a tenth of the different values are left as ")
              + shorter + "; a rule with \"dtype\": \"" + dtype + "\", and no wire, keeps them");
    }
  }

  /**
   * Returns whether the casts of a move are checked for values outside the range of a dtype. Only
   * casts to a smaller range are checked. A cast of f32 to bf16 is checked only in small tensors:
   * the two ranges differ by less than 1 %, so values outside are rare.
   */
  public static boolean isWatched(TensorMove move) {
    boolean isEqual =
        Casts.narrowest(move) == DType.BF16 && move.source().dtype() == DType.F32;
    return Casts.shrink(move)
        && !(isEqual && TargetTensor.elements(move.source().shape()) > CHUNK);
  }

  /** Returns the files that hold different pieces of a tensor. */
  public static List<SafetensorsFile> files(Checkpoint in, SourceTensor tensor) {
    if (!in.byRank()) {
      return List.of(in.whole(tensor.stored()));
    }
    List<SafetensorsFile> files = new ArrayList<>();
    Set<List<List<Runs.Run>>> pieces = new HashSet<>();
    for (int rank : tensor.from().mesh().ranks()) {
      if (pieces.add(tensor.held(rank).dims())) {
        files.add(Objects.requireNonNull(in.ranks().get(rank)));
      }
    }
    return files;
  }

  /** Returns {@code count} elements of a file from element {@code first} on. */
  public static Values values(TensorMove move, SafetensorsFile file, long first, int count) {
    DType dtype = move.source().dtype();
    Tensor stored = Tensor.allocate(dtype, count);
    file.read(move.source().stored(), first * dtype.bytes(), bytes(stored));
    Tensor sent = Tensor.allocate(move.wire().orElse(dtype), count).copyFrom(stored);
    Tensor written = Tensor.allocate(move.target().dtype(), count).copyFrom(sent);
    return new Values(doubles(stored), doubles(written));
  }

  private static double[] doubles(Tensor tensor) {
    double[] values = new double[(int) tensor.numel()];
    Tensor.allocate(DType.F64, values.length).copyFrom(tensor).copyTo(values);
    return values;
  }

  /** Returns a buffer over a tensor's memory. */
  public static ByteBuffer bytes(Tensor tensor) {
    return Tensor.of(tensor.address(), tensor.bytes(), tensor, DType.U8, tensor.bytes())
        .asByteBuffer()
        .order(ByteOrder.LITTLE_ENDIAN);
  }
}
