// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;

class DemoTest {
  @Test
  void viewsCoverEveryBuffer() {
    Model model = Model.ofLayers(2);
    Map<String, Long> covered = new HashMap<>();
    for (Weight weight : model.weights()) {
      long[] local = weight.to().localShape(weight.shape(), Model.TRAINER_RANKS);
      assertThat(covered.getOrDefault(weight.buffer(), 0L)).isEqualTo(weight.bufferRow());
      covered.merge(weight.buffer(), local[0], Long::sum);
      if (local.length == 2) {
        assertThat(local[1]).isEqualTo(model.buffers().get(weight.buffer())[1]);
      }
    }
    model.buffers().forEach((name, shape) -> assertThat(covered.get(name)).isEqualTo(shape[0]));
  }

  @Test
  void expectedValuesAreTheTermsSumRoundedToEight() {
    Weight summed =
        new Weight(
            3, "w", "g", new long[] {8, 8}, Layout.parse("2x4:P,S1"), Layout.parse("4@8:S1"), "b", 0);
    for (long element = 0; element < 5000; element++) {
      float sum = Values.value(3, 0, element) + Values.value(3, 1, element);
      int bits = Values.expected(summed, element) << 16;
      BigDecimal error = distance(bits, sum);
      assertThat(error).isLessThanOrEqualTo(distance(bits + 0x10000, sum));
      assertThat(error).isLessThanOrEqualTo(distance(bits - 0x10000, sum));
    }
  }

  private static BigDecimal distance(int bits, float value) {
    return new BigDecimal(Float.intBitsToFloat(bits)).subtract(new BigDecimal(value)).abs();
  }

  @Test
  void aPieceHoldsTheRanksElementsAndAWrongOneIsFound() {
    long[] shape = {8, 16};
    for (String from : new String[] {"2x4:R,S0", "2x4:P,S1", "2x4:S0,S0", "2x4:R,R"}) {
      Weight weight =
          new Weight(1, "w", "g", shape, Layout.parse(from), Layout.parse("4@8:S1"), "b", 0);
      for (int rank = 0; rank < Model.TRAINER_RANKS; rank++) {
        Tensor piece = Tensor.allocate(DType.F32, weight.from().localShape(shape, rank));
        Values.fill(weight, rank, piece);
        int held = rank;
        weight.from().localRegion(shape, rank).boxes().forEach(
            box -> {
              int term = from.contains("P") ? held / 4 : 0;
              long element = box.start()[0] * 16 + box.start()[1];
              assertThat((float) piece.getDouble(0, 0)).isEqualTo(Values.value(1, term, element));
              long last =
                  (box.start()[0] + box.length()[0] - 1) * 16 + box.start()[1] + box.length()[1] - 1;
              assertThat((float) piece.getDouble(box.length()[0] - 1, box.length()[1] - 1))
                  .isEqualTo(Values.value(1, term, last));
            });
      }
      Tensor part = Tensor.allocate(DType.BF16, 8, 4);
      short[] right = new short[32];
      for (int i = 0; i < 32; i++) {
        right[i] = Values.expected(weight, i / 4 * 16 + 2 * 4 + i % 4);
      }
      part.copyFrom(right);
      assertThat(Values.check(weight, 2, part)).isEqualTo(64);
      right[13] ^= 1;
      part.copyFrom(right);
      assertThatThrownBy(() -> Values.check(weight, 2, part))
          .isInstanceOf(VerificationFailedException.class)
          .hasMessageContaining("\"w\": element " + (3 * 16 + 9) + " on inference rank 10");
    }
  }
}
