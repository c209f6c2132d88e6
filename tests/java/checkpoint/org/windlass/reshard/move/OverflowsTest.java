// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.Layout;
import org.windlass.reshard.Reshard;
import org.windlass.reshard.check.LostValues;
import org.windlass.testing.TestFile;

/** Values that a cast puts beyond the range of a dtype, in tensors of all sizes. */
@Timeout(120)
class OverflowsTest {
  private static final int ROUNDS = 20_000;
  private static final int LARGE = 65_539;

  /** Each has a larger range than the next one. */
  private static final List<DType> DTYPES =
      List.of(DType.F64, DType.F32, DType.BF16, DType.F16, DType.F8E5M2, DType.F8E4M3);

  private static final double[] LARGEST = {
    Double.MAX_VALUE, Float.MAX_VALUE, 0x1.FEp127, 65504, 57344, 448
  };

  @TempDir Path folder;

  @Test
  void noThreadLosesWhatAnotherOneFinds() throws Exception {
    Overflows.Watch[] watches = new Overflows.Watch[ROUNDS];
    Arrays.setAll(watches, i -> new Overflows.Watch(DType.F32, Double.POSITIVE_INFINITY));
    // A thread that finds nothing looks for as long as it can before it says so.
    ByteBuffer plain = ByteBuffer.allocate(8192);
    ByteBuffer infinite = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    infinite.putFloat(4, Float.NEGATIVE_INFINITY);
    AtomicInteger begun = new AtomicInteger();
    Thread other = new Thread(() -> look(watches, plain, begun));
    other.start();
    look(watches, infinite, begun);
    other.join();
    assertThat(Arrays.stream(watches).filter(watch -> !watch.isFound()).count()).isZero();
  }

  /** Looks with each watch at the same time as the other thread. */
  private static void look(Overflows.Watch[] watches, ByteBuffer bytes, AtomicInteger begun) {
    for (int i = 0; i < watches.length; i++) {
      begun.incrementAndGet();
      while (begun.get() < 2 * (i + 1)) {
        Thread.yield();
      }
      watches[i].look(bytes);
    }
  }

  private static TestFile.Tensor tensor(String name, DType dtype, int elements, double value) {
    Tensor values = Tensor.allocate(dtype, elements);
    for (int i = 0; i < elements; i++) {
      values.setDouble(i == elements / 2 ? value : 1 + i % 7, i);
    }
    ByteBuffer bytes = LostValues.bytes(values);
    long[] bits = new long[elements];
    for (int i = 0; i < bytes.limit(); i++) {
      int width = dtype.bytes();
      bits[i / width] |= (bytes.get(i) & 0xffL) << i % width * Byte.SIZE;
    }
    return new TestFile.Tensor(name, dtype, new int[] {elements}, bits);
  }

  /** What a run with a cast says of tensors of several sizes that have {@code value}. */
  private List<String> warnings(DType from, Optional<DType> wire, DType to, double value)
      throws IOException {
    Path in = folder.resolve("in.safetensors");
    TestFile.write(
        in,
        List.of(
            tensor("a", from, 1, value), tensor("b", from, 7, value),
            tensor("c", from, 1000, value), tensor("d", from, LARGE, value)),
        Map.of());
    List<String> warnings = new ArrayList<>();
    Reshard reshard =
        Reshard.from(Layout.parse("1:R"))
            .to("1:R")
            .in(in)
            .out(folder.resolve("out.safetensors"))
            .dtype(to)
            .force()
            .warnings(warnings::add);
    wire.ifPresent(reshard::wire);
    reshard.run();
    return warnings;
  }

  @Test
  void aValueBeyondTheNarrowestDtypeIsNamedInTensorsOfAllSizes() throws IOException {
    int count = DTYPES.size();
    for (int source = 0; source < count; source++) {
      for (int target = 0; target < count; target++) {
        for (int wire = -1; wire < count; wire++) {
          int narrowest = Math.max(source, Math.max(target, wire));
          DType from = DTYPES.get(source);
          DType to = DTYPES.get(target);
          Optional<DType> over = Optional.of(wire).filter(w -> w >= 0).map(DTYPES::get);
          String run = from + " over " + over + " to " + to;
          // No dtype changes a power of two; the limit itself may be rounded up on its way.
          double within = Math.scalb(1.0, Math.getExponent(LARGEST[narrowest]));
          assertThat(warnings(from, over, to, within)).as(run).isEmpty();
          double beyond = -4 * within;
          if (Math.abs(beyond) <= LARGEST[source]) {
            String kind = " larger than " + DTYPES.get(narrowest) + " has them; ";
            assertThat(String.join("\n", warnings(from, over, to, beyond)))
                .as(run)
                .contains("4 tensors \"a\", \"b\", \"c\", \"d\": 4 values are" + kind)
                .hasLineCount(1);
          }
        }
      }
    }
  }
}
