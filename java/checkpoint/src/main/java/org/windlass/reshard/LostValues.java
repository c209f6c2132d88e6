// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;

/**
 * Finds small tensors that a cast leaves without what they say: most values become equal, as may those
 * of a router's biases; or one is beyond the dtype; or a count, such as of steps, becomes another.
 */
final class LostValues {
  private static final long MOST_ELEMENTS = 65_536;
  private static final int KEPT = 10;

  /** No dtype rounds a value above 1 by more: f8e5m2 has two bits behind the first. */
  private static final double ROUNDED = 1.13;

  private final Checkpoint in;
  private final Consumer<String> warnings;
  private final Doubts doubts = new Doubts();

  /** The values of one tensor, by their bits. */
  private final Set<Long> before = new HashSet<>();

  private final Set<Long> after = new HashSet<>();
  private boolean hasTooLarge;
  private boolean hasOtherCount;

  private LostValues(Checkpoint in, Consumer<String> warnings) {
    this.in = in;
    this.warnings = warnings;
  }

  /** Reads the tensors that are cast to fewer bits, on their way too, and says what is lost. */
  static void look(Checkpoint in, MoveList list, Consumer<String> warnings) {
    LostValues lost = new LostValues(in, warnings);
    for (TensorMove move : list.moves()) {
      DType from = move.source().dtype();
      DType wire = move.wire().orElse(from);
      DType to = move.target().dtype();
      if (Math.min(wire.bits(), to.bits()) < from.bits()
          && TargetTensor.elements(move.source().shape()) <= MOST_ELEMENTS
          && !move.source().from().hasPartial()) {
        lost.look(move.source(), wire, to);
      }
    }
    lost.doubts.tell(warnings);
  }

  private void look(SourceTensor tensor, DType wire, DType to) {
    before.clear();
    after.clear();
    hasTooLarge = false;
    hasOtherCount = false;
    if (in.byRank()) {
      for (int rank : tensor.from().mesh().ranks()) {
        look(in.ranks().get(rank), tensor, wire, to);
      }
    } else {
      look(in.whole(tensor.stored()), tensor, wire, to);
    }
    DType shorter = to.bits() < tensor.dtype().bits() ? to : wire;
    String remedy = "; a rule with \"dtype\": \"" + tensor.dtype() + "\", and no wire, keeps them";
    if (hasTooLarge) {
      doubts.add(tensor.name(), "values are larger than " + shorter + " has them" + remedy);
    } else if (hasOtherCount) {
      doubts.add(
          tensor.name(),
          "one whole number, such as a count of steps, which becomes another as " + shorter + remedy);
    } else if (after.size() * KEPT < before.size()) {
      warnings.accept(
          "tensor \"" + tensor.name() + "\": has " + before.size() + " values as " + tensor.dtype()
              + ", and " + after.size() + " as " + shorter + remedy);
    }
  }

  private void look(SafetensorsFile file, SourceTensor tensor, DType wire, DType to) {
    long elements = TargetTensor.elements(file.entry(tensor.stored()).dims());
    Tensor stored = Tensor.allocate(tensor.dtype(), elements);
    file.read(tensor.stored(), 0, bytes(stored));
    add(stored, before);
    Tensor sent = Tensor.allocate(wire, elements).copyFrom(stored);
    Tensor written = Tensor.allocate(to, elements).copyFrom(sent);
    add(written, after);
    double[] was = doubles(stored);
    double[] is = doubles(written);
    for (int i = 0; i < elements; i++) {
      double now = Math.abs(is[i]);
      hasTooLarge |=
          Double.isFinite(was[i])
              && (!Double.isFinite(now) || now > 1 && Math.abs(was[i]) > ROUNDED * now);
    }
    hasOtherCount |= elements == 1 && was[0] == Math.rint(was[0]) && was[0] != is[0];
  }

  private static double[] doubles(Tensor tensor) {
    Tensor wide = Tensor.allocate(DType.F64, tensor.shape()).copyFrom(tensor);
    double[] values = new double[(int) tensor.numel()];
    bytes(wide).asDoubleBuffer().get(values);
    return values;
  }

  /** A tensor's memory. */
  static ByteBuffer bytes(Tensor tensor) {
    return Tensor.of(tensor.address(), tensor.bytes(), tensor, DType.U8, tensor.bytes())
        .asByteBuffer()
        .order(ByteOrder.LITTLE_ENDIAN);
  }

  private static void add(Tensor tensor, Set<Long> bits) {
    ByteBuffer bytes = bytes(tensor);
    while (bytes.hasRemaining()) {
      bits.add(
          switch (tensor.dtype().bytes()) {
            case 1 -> (long) bytes.get();
            case 2 -> (long) bytes.getShort();
            case 4 -> (long) bytes.getInt();
            default -> bytes.getLong();
          });
    }
  }
}
