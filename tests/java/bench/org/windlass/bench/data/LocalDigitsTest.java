// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;

class LocalDigitsTest {
  private static boolean contains(Region region, int dim, long index) {
    return region.intervals(dim).stream()
        .anyMatch(part -> part.start() <= index && index < part.end());
  }

  @ParameterizedTest
  @ValueSource(strings = {"3:S0", "2x2:S1,S0", "2x2:SS0/2,S0", "4:R", "5:S2", "2x2:SS1/2,SS2/3"})
  void followTheElementsThatARankHolds(String text) {
    Layout layout = Layout.parse(text);
    long[] shape = {7, 4, 6};
    for (int rank : layout.mesh().ranks()) {
      List<Byte> expected = new ArrayList<>();
      var region = layout.localRegion(shape, rank);
      for (long index = 0; index < 7 * 4 * 6; index++) {
        if (contains(region, 0, index / 24)
            && contains(region, 1, index / 6 % 4)
            && contains(region, 2, index % 6)) {
          expected.add((byte) Digits.of(index));
        }
      }
      byte[] digits = LocalDigits.of(layout, shape, rank);
      assertThat(digits).hasSize(expected.size());
      for (int i = 0; i < digits.length; i++) {
        assertThat(digits[i]).isEqualTo(expected.get(i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"u8", "bf16", "f32", "i64"})
  void aTermIsWrittenWithAndWithoutAListOfItsDigits(String text) {
    DType dtype = DType.parse(text);
    long[] bits = Digits.encode(dtype, ReduceOp.SUM);
    byte[] digits = new byte[100];
    for (int i = 0; i < digits.length; i++) {
      digits[i] = (byte) Digits.of(i, 5);
    }
    ByteBuffer listed = memory(digits.length * dtype.bytes());
    ByteBuffer counted = memory(digits.length * dtype.bytes());
    Digits.write(listed, digits, bits, dtype.bytes(), 3);
    Digits.write(counted, 5, bits, dtype.bytes(), 3);
    assertThat(counted).isEqualTo(listed);
    Digits.write(counted, 0, bits, dtype.bytes(), 3);
    assertThat(Digits.mismatch(counted, 0, bits, dtype.bytes(), 3)).isEqualTo(-1);
    ByteBuffer rest = counted.slice(7 * dtype.bytes(), 9 * dtype.bytes());
    rest.order(ByteOrder.LITTLE_ENDIAN);
    assertThat(Digits.mismatch(rest, 7, bits, dtype.bytes(), 3)).isEqualTo(-1);
    rest.put(8 * dtype.bytes(), (byte) (rest.get(8 * dtype.bytes()) ^ 1));
    assertThat(Digits.mismatch(rest, 7, bits, dtype.bytes(), 3)).isEqualTo(8);
  }

  private static ByteBuffer memory(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  @ParameterizedTest
  @CsvSource({
    "i8, 100, true",
    "f32, 4096, true",
    "bf16, 36, true",
    "bf16, 37, false",
    "f8e4m3, 2, true",
    "f8e4m3, 3, false",
    "f8e5m2, 1, true",
    "f8e5m2, 2, false",
  })
  void wholeNumbersBeyondTheSignificandRound(String dtype, int ranks, boolean exact) {
    assertThat(new Sums(DType.parse(dtype), ranks).areExact()).isEqualTo(exact);
  }

  @Test
  void ofAScalar() {
    assertThat(LocalDigits.of(Layout.parse("2:R"), new long[0], 1)).containsExactly(Digits.of(0));
  }

  @Test
  void termsCountTheRanksThatShareAnElement() {
    Layout layout = Layout.parse("2x3x2:P,S0,P");
    assertThat(LocalDigits.terms(layout)).isEqualTo(4);
    assertThat(LocalDigits.term(layout, 0)).isZero();
    assertThat(LocalDigits.term(layout, 1)).isEqualTo(1);
    assertThat(LocalDigits.term(layout, 6)).isEqualTo(2);
    assertThat(LocalDigits.term(layout, 11)).isEqualTo(3);
    assertThat(LocalDigits.terms(Layout.parse("4:S0"))).isEqualTo(1);
  }

  @Test
  void reducedElementsAreThoseOfTheirTerms() {
    long[] sums = Digits.encodeReduced(DType.F32, ReduceOp.SUM, 3);
    long[] averages = Digits.encodeReduced(DType.F32, ReduceOp.AVG, 2, DType.BF16);
    long[] products = Digits.encodeReduced(DType.U8, ReduceOp.PRODUCT, 32);
    for (int digit = 0; digit < Digits.COUNT; digit++) {
      int second = digit + 3 & 7;
      int third = digit + 6 & 7;
      assertThat(Float.intBitsToFloat((int) sums[digit])).isEqualTo(digit + second + third);
      assertThat(Float.intBitsToFloat((int) averages[digit] << 16))
          .isEqualTo((digit + second) / 2f);
      assertThat(products[digit]).isZero(); // 2^16 wraps in eight bits
    }
    assertThat(Digits.encode(DType.F16, ReduceOp.SUM)[3]).isEqualTo(0x4200);
    assertThat(Digits.encode(DType.I64, ReduceOp.SUM)[5]).isEqualTo(5);
  }
}
