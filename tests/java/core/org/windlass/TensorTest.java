// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Shapes;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.ScalarReference;

/** Views, elements, arrays and the kinds of memory that tensors lie in. */
class TensorTest {
  /** The elements 0, 1, 2, ... in row-major order. */
  private static Tensor counting(long... shape) {
    Tensor tensor = Tensor.allocate(DType.I32, shape);
    int[] values = new int[(int) tensor.numel()];
    for (int i = 0; i < values.length; i++) {
      values[i] = i;
    }
    return tensor.copyFrom(values);
  }

  private static int[] ints(Tensor tensor) {
    int[] values = new int[(int) tensor.numel()];
    tensor.copyTo(values);
    return values;
  }

  @Test
  void narrowTakesARange() {
    Tensor view = counting(3, 4).narrow(1, 1, 2);
    assertThat(view.shape()).containsExactly(3, 2);
    assertThat(view.strides()).containsExactly(4, 1);
    assertThat(view.isContiguous()).isFalse();
    assertThat(ints(view)).containsExactly(1, 2, 5, 6, 9, 10);
  }

  @Test
  void selectDropsADimension() {
    assertThat(ints(counting(3, 4).select(0, 2))).containsExactly(8, 9, 10, 11);
    assertThat(ints(counting(3, 4).select(1, 2))).containsExactly(2, 6, 10);
    assertThat(counting(5).select(0, 3).getLong()).isEqualTo(3);
  }

  @Test
  void transposeExchangesDimensions() {
    assertThat(ints(counting(2, 3).transpose(0, 1))).containsExactly(0, 3, 1, 4, 2, 5);
  }

  @Test
  void splitDimUndoesAFusion() {
    Tensor heads = counting(2, 6).splitDim(1, 3, 2);
    assertThat(heads.shape()).containsExactly(2, 3, 2);
    assertThat(ints(heads.narrow(1, 1, 1))).containsExactly(2, 3, 8, 9);
    assertThat(ints(counting(4).narrow(0, 0, 0).splitDim(0, 0, 5))).isEmpty();
  }

  @Test
  void reshapeKeepsTheOrder() {
    assertThat(ints(counting(2, 6).reshape(3, 4).select(0, 1))).containsExactly(4, 5, 6, 7);
    assertThat(counting(2, 1).transpose(0, 1).isContiguous()).isTrue();
  }

  @Test
  void emptyViewsStayInsideTheirMemory() {
    Tensor tensor = Tensor.allocate(DType.F32, 4, 4);
    Tensor empty = tensor.narrow(0, 4, 0).narrow(1, 4, 0);
    assertThat(empty.numel()).isZero();
    assertThat(empty.bytes()).isZero();
    assertThat(empty.address()).isBetween(tensor.address(), tensor.address() + tensor.bytes());
    empty.fill(1);
    assertThat(empty.asByteBuffer().remaining()).isZero();
  }

  /** Chains of views against index arithmetic on a plain array. */
  @RandomSeeds(1000)
  void chainsOfViewsReadWhatTheReferenceReads(long seed) {
    Random random = new Random(seed);
    long[] shape = new long[1 + random.nextInt(4)];
    for (int d = 0; d < shape.length; d++) {
      shape[d] = 1 + random.nextInt(6);
    }
    Tensor tensor = counting(shape);
    Reference reference = new Reference(shape, ints(tensor));
    for (int step = 0; step < 5 && tensor.ndim() > 0; step++) {
      int dim = random.nextInt(tensor.ndim());
      long extent = tensor.shape()[dim];
      switch (random.nextInt(4)) {
        case 0 -> {
          long start = random.nextInt((int) extent + 1);
          long length = random.nextInt((int) (extent - start) + 1);
          tensor = tensor.narrow(dim, start, length);
          reference = reference.narrow(dim, start, length);
        }
        case 1 -> {
          if (extent > 0) {
            long index = random.nextInt((int) extent);
            tensor = tensor.select(dim, index);
            reference = reference.narrow(dim, index, 1).drop(dim);
          }
        }
        case 2 -> {
          int other = random.nextInt(tensor.ndim());
          tensor = tensor.transpose(dim, other);
          reference = reference.transpose(dim, other);
        }
        default -> {
          long part = extent % 2 == 0 ? 2 : 1;
          tensor = tensor.splitDim(dim, part, extent / part);
          reference = reference.split(dim, part);
        }
      }
      assertThat(tensor.shape()).isEqualTo(reference.shape);
      assertThat(ints(tensor)).isEqualTo(reference.values);
    }
  }

  /** A dense array that copies where a tensor makes a view. */
  private record Reference(long[] shape, int[] values) {
    private interface Source {
      long[] index(long[] index);
    }

    private Reference gather(long[] newShape, Source source) {
      int[] gathered = new int[(int) Shapes.numel(newShape)];
      long[] index = new long[newShape.length];
      for (int i = 0; i < gathered.length; i++) {
        long rest = i;
        for (int d = newShape.length - 1; d >= 0; d--) {
          index[d] = rest % newShape[d];
          rest /= newShape[d];
        }
        long at = 0;
        long[] from = source.index(index);
        for (int d = 0; d < shape.length; d++) {
          at = at * shape[d] + from[d];
        }
        gathered[i] = values[(int) at];
      }
      return new Reference(newShape, gathered);
    }

    Reference narrow(int dim, long start, long length) {
      long[] newShape = shape.clone();
      newShape[dim] = length;
      return gather(
          newShape,
          index -> {
            long[] from = index.clone();
            from[dim] += start;
            return from;
          });
    }

    Reference drop(int dim) {
      return new Reference(Shapes.without(shape, dim), values);
    }

    Reference transpose(int a, int b) {
      return gather(Shapes.swapped(shape, a, b), index -> Shapes.swapped(index, a, b));
    }

    Reference split(int dim, long parts) {
      long[] newShape = new long[shape.length + 1];
      System.arraycopy(shape, 0, newShape, 0, dim);
      newShape[dim] = parts;
      newShape[dim + 1] = shape[dim] / parts;
      System.arraycopy(shape, dim + 1, newShape, dim + 2, shape.length - dim - 1);
      return new Reference(newShape, values);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"F64", "F32", "F16", "BF16", "F8E4M3", "F8E5M2"})
  void floatsRoundOnce(DType dtype) {
    double[] values = {0, -0.0, 1, -1.5, 1.0 / 3, 3e-8, 1e30, -70000, 447.9, Double.NaN};
    Tensor tensor = Tensor.allocate(dtype, values.length);
    tensor.copyFrom(values);
    double[] back = new double[values.length];
    tensor.copyTo(back);
    for (int i = 0; i < values.length; i++) {
      double expected = ScalarReference.decode(dtype, ScalarReference.encode(dtype, values[i]));
      assertThat(back[i]).as("%s of %s", dtype, values[i]).isEqualTo(Double.valueOf(expected));
      assertThat(tensor.getDouble(i)).isEqualTo(Double.valueOf(expected));
      Tensor one = Tensor.allocate(dtype);
      one.setDouble(values[i]);
      assertThat(one.getDouble()).isEqualTo(Double.valueOf(expected));
      assertThat(one.fill(values[i]).getDouble()).isEqualTo(Double.valueOf(expected));
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64"})
  void integersKeepTheirRange(DType dtype) {
    boolean signed = dtype.toString().startsWith("i");
    int bits = dtype.bits();
    long least = signed ? -1L << (bits - 1) : 0;
    long most = signed ? ~least : bits == 64 ? -1L : (1L << bits) - 1;
    Tensor tensor = Tensor.allocate(dtype, 3);
    tensor.fill(1);
    tensor.setLong(least, 0);
    tensor.setLong(most, 2);
    assertThat(tensor.getLong(0)).isEqualTo(least);
    assertThat(tensor.getLong(1)).isEqualTo(1);
    assertThat(tensor.getLong(2)).isEqualTo(most);
    double expected = dtype == DType.U64 ? 0x1p64 : (double) most;
    assertThat(tensor.getDouble(2)).isEqualTo(Double.valueOf(expected));
    assertThat(tensor.fill(7.0).getLong(1)).isEqualTo(7);
  }

  @Test
  void arraysLargerThanTheStagingBufferPass() {
    Random random = new Random(7);
    double[] values = random.doubles(3 * 70_001).toArray();
    Tensor tensor = Tensor.allocate(DType.F64, 70_001, 3).transpose(0, 1);
    tensor.copyFrom(values);
    double[] back = new double[values.length];
    tensor.copyTo(back);
    assertThat(back).isEqualTo(values);
    assertThat(tensor.getDouble(2, 70_000)).isEqualTo(values[values.length - 1]);
    Tensor row = Tensor.allocate(DType.F64, 1, values.length);
    row.copyFrom(values).copyTo(back);
    assertThat(back).isEqualTo(values);
  }

  @Test
  void bitsOfNarrowFloatsPassAsIntegers() {
    Tensor tensor = Tensor.allocate(DType.BF16, 2).copyFrom(new short[] {0x3f80, (short) 0xc000});
    assertThat(tensor.getDouble(0)).isEqualTo(1);
    assertThat(tensor.getDouble(1)).isEqualTo(-2);
    byte[] bits = new byte[2];
    Tensor.allocate(DType.F8E4M3, 2).fill(1.0).copyTo(bits);
    assertThat(bits).containsExactly(0x38, 0x38);
  }

  @Test
  void anArrayThatDoesNotFitNamesOneThatDoes() {
    Object[][] cases = {
      {DType.I64, "long[]"}, {DType.I8, "byte[]"}, {DType.U16, "short[]"},
      {DType.F64, "float[] or double[]"}, {DType.C64, "asByteBuffer"}
    };
    for (Object[] each : cases) {
      Tensor tensor = Tensor.allocate((DType) each[0], 2);
      assertThatThrownBy(() -> tensor.copyFrom(new int[2]))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage(
              "copyFrom: values has 32-bit integer elements, which can't be copied to a tensor of dtype " + each[0]
                  + "; use " + each[1]);
    }
  }

  @Test
  void copyCastsBetweenViews() {
    Tensor source = Tensor.allocate(DType.F32, 2, 3);
    source.copyFrom(new float[] {1, 2, 3, 4, 5, 6});
    Tensor target = Tensor.allocate(DType.F16, 3, 4).narrow(1, 1, 2);
    target.copyFrom(source.transpose(0, 1));
    float[] values = new float[6];
    target.copyTo(values);
    assertThat(values).containsExactly(1, 4, 2, 5, 3, 6);
  }

  @Test
  void aBufferIsSharedWithItsTensor() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
    buffer.putFloat(8, 2.5f).position(8);
    Tensor tensor = Tensor.of(buffer, DType.F32, 2, 7);
    assertThat(tensor.getDouble(0, 0)).isEqualTo(2.5);
    tensor.setDouble(-1, 1, 6);
    assertThat(buffer.getFloat(8 + 13 * 4)).isEqualTo(-1);
    assertThat(buffer.position()).isEqualTo(8);
    tensor.asByteBuffer().putFloat(4, 9);
    assertThat(buffer.getFloat(12)).isEqualTo(9);
    Tensor.of(buffer.slice(), DType.U8, 3).fill(0);
    assertThat(buffer.get(8)).isZero();
  }

  @Test
  void aReadOnlyBufferMakesAReadOnlyTensor() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder()).putInt(0, 42);
    ByteBuffer readOnly = buffer.asReadOnlyBuffer().order(ByteOrder.nativeOrder());
    Tensor tensor = Tensor.of(readOnly, DType.I32, 1);
    assertThat(tensor.isReadOnly()).isTrue();
    assertThat(tensor.getLong(0)).isEqualTo(42);
    assertThat(tensor.asByteBuffer().isReadOnly()).isTrue();
  }

  @Test
  void aRawAddressIsSharedWithItsTensor() {
    ByteBuffer owner = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    Tensor tensor = Tensor.of(NativeMemory.address(owner), 16, owner, DType.I64, 2);
    tensor.setLong(5, 1);
    assertThat(owner.getLong(8)).isEqualTo(5);
  }

  @Test
  void slicesBeyondTwoGibibytes() {
    long bytes = (1L << 31) + 4096;
    try (LocalGroup group = LocalGroup.of(1);
        Window window = group.communicator(0).window(bytes)) { // only pages in use take memory
      Tensor tensor = window.tensor(DType.BF16, bytes / 2);
      ByteBuffer end = tensor.asByteBuffer(bytes - 8, 8);
      end.putShort(6, (short) 0x4040);
      assertThat(tensor.getDouble(bytes / 2 - 1)).isEqualTo(3);
      assertThat(tensor.narrow(0, bytes / 2 - 2, 2).getDouble(1)).isEqualTo(3);
      assertThatThrownBy(tensor::asByteBuffer).isInstanceOf(InvalidArgumentException.class);
    }
  }

  @Test
  void textNamesDtypeAndShape() {
    assertThat(Tensor.allocate(DType.BF16, 2, 3)).hasToString("bf16[2, 3]");
    assertThat(Tensor.allocate(DType.F32)).hasToString("f32[]");
  }
}
