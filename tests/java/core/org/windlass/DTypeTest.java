// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class DTypeTest {
  private static final Set<DType> CASTABLE =
      EnumSet.of(DType.F64, DType.F32, DType.F16, DType.BF16, DType.F8E4M3, DType.F8E5M2);

  @ParameterizedTest
  @EnumSource(DType.class)
  void bothSpellingsRead(DType dtype) {
    assertThat(DType.parse(dtype.toString())).isEqualTo(dtype);
    assertThat(DType.parse(dtype.safetensorsName())).isEqualTo(dtype);
  }

  @Test
  void spellingsAreThoseOfTheContract() {
    assertThat(DType.F8E4M3).hasToString("f8e4m3");
    assertThat(DType.F8E4M3.safetensorsName()).isEqualTo("F8_E4M3");
    assertThatThrownBy(() -> DType.parse("float32"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("'float32'");
  }

  @Test
  void codesAreDistinctAndBelongToWholeBytes() {
    Set<Integer> codes = new HashSet<>();
    for (DType dtype : DType.values()) {
      assertThat(dtype.code() >= 0).isEqualTo(dtype.bits() >= 8);
      // Those of other machines move as bytes.
      boolean isByte = dtype.toString().endsWith("fnuz");
      assertThat(dtype.code() < 0 || isByte || codes.add(dtype.code())).isTrue();
      assertThat(!isByte || dtype.code() == DType.U8.code()).isTrue();
    }
  }

  @Test
  void floatsCastToFloatsAndEverythingToItself() {
    for (DType from : DType.values()) {
      for (DType to : DType.values()) {
        boolean expected = from == to || CASTABLE.contains(from) && CASTABLE.contains(to);
        assertThat(from.canCast(to)).as("%s to %s", from, to).isEqualTo(expected);
      }
    }
  }

  @Test
  void reductionsAreThoseOfTheContract() {
    for (DType dtype : CASTABLE) {
      for (ReduceOp op : ReduceOp.values()) {
        assertThat(dtype.canReduce(op)).isTrue();
      }
    }
    assertThat(DType.I32.canReduce(ReduceOp.SUM)).isTrue();
    assertThat(DType.U8.canReduce(ReduceOp.AVG)).isFalse();
    assertThat(DType.BOOL.canReduce(ReduceOp.MAX)).isTrue();
    assertThat(DType.BOOL.canReduce(ReduceOp.SUM)).isFalse();
    assertThat(DType.C64.canReduce(ReduceOp.SUM)).isFalse();
    assertThat(DType.F8E8M0.canReduce(ReduceOp.MAX)).isFalse();
  }

  @Test
  void bytesOfPackedElements() {
    assertThat(DType.F4.bytesOf(6)).isEqualTo(3);
    assertThat(DType.F6E2M3.bytesOf(4)).isEqualTo(3);
    assertThat(DType.F4.bytesOf(Long.MAX_VALUE - 1)).isEqualTo((Long.MAX_VALUE - 1) / 2);
    assertThat(DType.BF16.bytesOf(3)).isEqualTo(6);
    assertThatThrownBy(() -> DType.F4.bytesOf(3)).isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> DType.F32.bytesOf(1L << 61)).hasMessageContaining("overflow");
    assertThatThrownBy(() -> DType.F32.bytesOf(-1)).hasMessageContaining("negative");
    assertThatThrownBy(DType.F4::bytes).isInstanceOf(UnsupportedException.class);
  }
}
