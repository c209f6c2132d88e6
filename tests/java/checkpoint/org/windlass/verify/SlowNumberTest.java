// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.ReduceOp;

class SlowNumberTest {
  private static final DType[] NARROW = {DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2};

  @Test
  void everyNumberOfANarrowDtypeIsItself() {
    for (DType dtype : NARROW) {
      for (long bits = 0; bits < 1L << dtype.bits(); bits++) {
        double value = SlowNumber.decode(dtype, bits);
        if (!Double.isNaN(value)) {
          assertThat(SlowNumber.encode(dtype, value)).isEqualTo(bits);
        }
      }
    }
  }

  @Test
  void f32AndF64AreJavas() {
    Random random = new Random(1);
    for (int i = 0; i < 100_000; i++) {
      long bits = random.nextLong();
      double value = Double.longBitsToDouble(bits);
      if (!Double.isNaN(value)) {
        assertThat(SlowNumber.encode(DType.F64, value)).isEqualTo(bits);
        assertThat((int) SlowNumber.encode(DType.F32, value))
            .isEqualTo(Float.floatToRawIntBits((float) value));
        float single = Float.intBitsToFloat((int) bits);
        if (!Float.isNaN(single)) {
          assertThat(SlowNumber.decode(DType.F32, bits & 0xffffffffL)).isEqualTo(single);
        }
      }
    }
  }

  @Test
  void tiesGoToEvenAndOverflowAndNanAsTheDesignSays() {
    assertThat(SlowNumber.encode(DType.BF16, 1 + 0x1p-8)).isEqualTo(0x3f80);
    assertThat(SlowNumber.encode(DType.BF16, 1 + 3 * 0x1p-8)).isEqualTo(0x3f82);
    assertThat(SlowNumber.encode(DType.BF16, 1 + 0x1p-8 + 0x1p-40)).isEqualTo(0x3f81);
    assertThat(SlowNumber.encode(DType.F16, 65519.999)).isEqualTo(0x7bff);
    assertThat(SlowNumber.encode(DType.F16, 65520)).isEqualTo(0x7c00);
    assertThat(SlowNumber.encode(DType.F16, -1e30)).isEqualTo(0xfc00);
    assertThat(SlowNumber.encode(DType.F16, 0x1p-25)).isZero();
    assertThat(SlowNumber.encode(DType.F16, 0x1.8p-25)).isEqualTo(1);
    assertThat(SlowNumber.encode(DType.F8E4M3, 1e9)).isEqualTo(0x7e);
    assertThat(SlowNumber.encode(DType.F8E4M3, Double.NEGATIVE_INFINITY)).isEqualTo(0xfe);
    assertThat(SlowNumber.encode(DType.F8E5M2, 1e9)).isEqualTo(0x7c);
    assertThat(SlowNumber.encode(DType.F8E4M3, Double.NaN)).isEqualTo(0x7f);
    assertThat(SlowNumber.encode(DType.F8E5M2, Double.NaN)).isEqualTo(0x7e);
    assertThat(SlowNumber.encode(DType.F32, -0.0)).isEqualTo(0x80000000L);
    assertThat(SlowNumber.cast(DType.F32, DType.F32, 0x7f800001L)).isEqualTo(0x7f800001L);
    assertThat(SlowNumber.cast(DType.F32, DType.F64, 0xff800001L)).isEqualTo(0x7ff8000000000000L);
  }

  @Test
  void foldsAreThoseOfTheDesign() {
    assertThat(SlowNumber.fold(DType.U8, ReduceOp.SUM, new long[] {200, 100})).isEqualTo(44);
    assertThat(SlowNumber.fold(DType.I8, ReduceOp.MAX, new long[] {0x80, 0xff})).isEqualTo(0xff);
    assertThat(SlowNumber.fold(DType.U64, ReduceOp.MIN, new long[] {-1, 5})).isEqualTo(5);
    assertThat(SlowNumber.fold(DType.I16, ReduceOp.PRODUCT, new long[] {0xffff, 7})).isEqualTo(0xfff9);
    assertThat(SlowNumber.fold(DType.BOOL, ReduceOp.MIN, new long[] {1, 0})).isZero();
    long[] zeros = {0x80000000L, 0};
    assertThat(SlowNumber.fold(DType.F32, ReduceOp.MAX, zeros)).isZero();
    assertThat(SlowNumber.fold(DType.F32, ReduceOp.MIN, zeros)).isEqualTo(0x80000000L);
    assertThat(SlowNumber.fold(DType.F32, ReduceOp.MAX, new long[] {0x7f800001L, 0}))
        .isEqualTo(0x7fc00000L);
    // 1 + 2^-24 + 2^-24 from the left stays 1 in f32 and is more in f64.
    long one = 0x3f800000L;
    long tiny = 0x33800000L;
    assertThat(SlowNumber.fold(DType.F32, ReduceOp.SUM, new long[] {one, tiny, tiny})).isEqualTo(one);
    assertThat(SlowNumber.fold(DType.BF16, ReduceOp.AVG, new long[] {0x3f80, 0x4000, 0x4040}))
        .isEqualTo(0x4000);
    assertThat(SlowNumber.fold(DType.F32, ReduceOp.SUM, new long[] {0x7f800001L})).isEqualTo(0x7f800001L);
  }
}
