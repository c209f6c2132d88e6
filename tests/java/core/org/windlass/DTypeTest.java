// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;

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
        assertThat(dtype.canReduce(op)).isEqualTo(!op.isBitwise());
      }
    }
    assertThat(DType.I32.canReduce(ReduceOp.SUM)).isTrue();
    assertThat(DType.U8.canReduce(ReduceOp.AVG)).isFalse();
    assertThat(DType.BOOL.canReduce(ReduceOp.MAX)).isTrue();
    assertThat(DType.BOOL.canReduce(ReduceOp.SUM)).isFalse();
    assertThat(DType.BOOL.canReduce(ReduceOp.AND)).isFalse();
    assertThat(DType.I64.canReduce(ReduceOp.XOR)).isTrue();
    assertThat(DType.C64.canReduce(ReduceOp.SUM)).isFalse();
    assertThat(DType.F8E8M0.canReduce(ReduceOp.MAX)).isFalse();
  }

  /** Two of one number would be taken for one another wherever ranks, or files, compare them. */
  @Test
  void everyDTypeOfWholeBytesHasANumberOfItsOwn() {
    List<Integer> numbers =
        Arrays.stream(DType.values()).map(DType::code).filter(code -> code >= 0).toList();
    assertThat(numbers).doesNotHaveDuplicates().hasSize(Native.WL_DTYPE_COUNT);
    assertThat(numbers).contains(0, Native.WL_DTYPE_COUNT - 1);
  }

  /** What has no arithmetic moves, and is refused where it would be computed with. */
  @ParameterizedTest
  @EnumSource(names = {"F8E8M0", "F8E4M3FNUZ", "F8E5M2FNUZ", "C64"})
  void whatOnlyMovesIsRefusedElsewhere(DType dtype) {
    byte[] bits = {0x40, (byte) 0xc0, (byte) 0x80, 1, 2, 3, 4, 5};
    int count = bits.length / dtype.bytes();
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          communicator -> {
            Tensor own = Tensor.allocate(dtype, count);
            own.asByteBuffer().put(bits);
            Tensor all = Tensor.allocate(dtype, 2, count);
            communicator.allGather(own, all);
            byte[] gathered = new byte[2 * bits.length];
            all.asByteBuffer().get(gathered);
            assertThat(Arrays.copyOf(gathered, bits.length)).isEqualTo(bits);
            assertThat(Arrays.copyOfRange(gathered, bits.length, gathered.length)).isEqualTo(bits);
            for (ReduceOp op : ReduceOp.values()) {
              assertThatThrownBy(() -> communicator.allReduce(own, op))
                  .isInstanceOf(UnsupportedException.class)
                  .hasMessageContaining(dtype.toString());
              assertThat(dtype.canReduce(op)).isFalse();
            }
            assertThatThrownBy(() -> own.fill(1.0)).isInstanceOf(UnsupportedException.class);
            byte[] kept = new byte[bits.length];
            own.asByteBuffer().get(kept);
            assertThat(kept).isEqualTo(bits);
          });
    }
    try (LocalGroup group = LocalGroup.of(2)) {
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        DType mine = communicator.rank() == 0 ? DType.U8 : dtype;
                        Tensor own = Tensor.allocate(mine, bits.length / mine.bytes());
                        communicator.broadcast(own, 0);
                      }))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining(dtype.toString());
    }
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
