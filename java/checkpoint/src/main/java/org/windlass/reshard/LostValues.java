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

/** Finds small tensors of which a cast makes most values equal, such as the biases of a router. */
final class LostValues {
  private static final long MOST_ELEMENTS = 65_536;
  private static final int KEPT = 10;

  private final Checkpoint in;
  private final Consumer<String> warnings;

  private LostValues(Checkpoint in, Consumer<String> warnings) {
    this.in = in;
    this.warnings = warnings;
  }

  /**
   * Reads the tensors that are cast to fewer bits, on their way too, and says where under a tenth of
   * the values is left.
   */
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
  }

  private void look(SourceTensor tensor, DType wire, DType to) {
    Set<Long> before = new HashSet<>();
    Set<Long> after = new HashSet<>();
    if (in.byRank()) {
      for (int rank : tensor.from().mesh().ranks()) {
        count(in.ranks().get(rank), tensor, wire, to, before, after);
      }
    } else {
      count(in.whole(tensor.stored()), tensor, wire, to, before, after);
    }
    if (after.size() * KEPT < before.size()) {
      warnings.accept(
          "tensor \"" + tensor.name() + "\": has " + before.size() + " values as " + tensor.dtype()
              + ", and " + after.size() + " as " + (to.bits() < tensor.dtype().bits() ? to : wire)
              + "; a rule with \"dtype\": \"" + tensor.dtype() + "\", and no wire, keeps them");
    }
  }

  private static void count(
      SafetensorsFile file,
      SourceTensor tensor,
      DType wire,
      DType to,
      Set<Long> before,
      Set<Long> after) {
    long elements = TargetTensor.elements(file.entry(tensor.stored()).dims());
    Tensor stored = Tensor.allocate(tensor.dtype(), elements);
    file.read(tensor.stored(), 0, bytes(stored));
    add(stored, before);
    Tensor sent = Tensor.allocate(wire, elements).copyFrom(stored);
    add(Tensor.allocate(to, elements).copyFrom(sent), after);
  }

  private static ByteBuffer bytes(Tensor tensor) {
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
