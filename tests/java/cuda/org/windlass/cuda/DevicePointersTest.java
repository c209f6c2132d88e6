// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.ref.WeakReference;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.ShortPointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

/** Pointers to device memory that isn't there, which nothing may touch. */
@Timeout(60)
class DevicePointersTest {
  private static final long ADDRESS = 0x7f00_0000_0000L;

  /** A pointer as cudaMalloc leaves it: an address, no limit, no deallocator. */
  private static final class Address extends Pointer {
    Address() {
      address = ADDRESS;
    }
  }

  @ParameterizedTest
  @CsvSource({"byte, 1", "short, 2", "float, 4", "double, 8"})
  void positionsCountElementsOfThePointer(String kind, int size) {
    Pointer pointer =
        switch (kind) {
          case "byte" -> new BytePointer(new Address());
          case "short" -> new ShortPointer(new Address());
          case "float" -> new FloatPointer(new Address());
          default -> new DoublePointer(new Address());
        };
    assertThat(pointer.sizeof()).isEqualTo(size);
    assertThat(DevicePointers.tensor(pointer, DType.F32, 3, 5).address()).isEqualTo(ADDRESS);
    Tensor moved = DevicePointers.tensor(pointer.position(24), DType.F32, 3, 5);
    assertThat(moved.address()).isEqualTo(ADDRESS + 24L * size);
    assertThat(moved.isOnDevice()).isTrue();
    assertThat(moved).hasToString("f32[3, 5]");
  }

  @Test
  void aPlainPointerCountsBytes() {
    Pointer pointer = new Pointer(new Address());
    assertThat(DevicePointers.tensor(pointer.position(64), DType.BF16, 8).address())
        .isEqualTo(ADDRESS + 64);
  }

  @Test
  void aLimitSaysHowManyBytesThereAre() {
    FloatPointer pointer = new FloatPointer(new Address());
    pointer.capacity(16);
    assertThat(DevicePointers.tensor(pointer, DType.F32, 16).numel()).isEqualTo(16);
    assertThatThrownBy(() -> DevicePointers.tensor(pointer, DType.F32, 17))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("needs 68 bytes, the memory holds 64");
    pointer.position(10);
    assertThatThrownBy(() -> DevicePointers.tensor(pointer, DType.F32, 7))
        .hasMessageContaining("needs 28 bytes, the memory holds 24");
    pointer.limit(12);
    assertThatThrownBy(() -> DevicePointers.tensor(pointer, DType.F32, 3))
        .hasMessageContaining("needs 12 bytes, the memory holds 8");
    assertThat(DevicePointers.tensor(pointer, DType.F32, 2).address()).isEqualTo(ADDRESS + 40);
  }

  @Test
  void nullPointersAreRefused() {
    for (Pointer pointer : new Pointer[] {new Pointer(), new FloatPointer(), new BytePointer()}) {
      assertThatThrownBy(() -> DevicePointers.tensor(pointer, DType.F32, 4))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage("tensor: pointer is null, as before cudaMalloc");
    }
    assertThatThrownBy(() -> DevicePointers.tensor(null, DType.F32, 4))
        .isInstanceOf(NullPointerException.class)
        .hasMessage("pointer");
    assertThatThrownBy(() -> DevicePointers.pointer(null))
        .isInstanceOf(NullPointerException.class)
        .hasMessage("tensor");
  }

  @Test
  void aShapeThatIsNoneIsRefusedAsByTensors() {
    FloatPointer pointer = new FloatPointer(new Address());
    for (long[] shape : new long[][] {{-1}, {4, -4}, {Long.MAX_VALUE, 2}}) {
      assertThatThrownBy(() -> DevicePointers.tensor(pointer, DType.F32, shape))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageStartingWith("ofDevice: ");
    }
    assertThatThrownBy(() -> DevicePointers.tensor(pointer.position(1), DType.F64, 4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("is not a multiple of 8");
  }

  /** As JavaCPP has it of classes whose natives don't load. */
  private static final class OfNoSize extends Pointer {
    OfNoSize() {
      address = ADDRESS;
    }

    @Override
    public int sizeof() {
      return -1;
    }
  }

  @Test
  void aPositionOfElementsOfNoKnownSizeIsRefused() {
    OfNoSize pointer = new OfNoSize();
    assertThat(DevicePointers.tensor(pointer, DType.U8, 4).address()).isEqualTo(ADDRESS);
    assertThatThrownBy(() -> DevicePointers.tensor(pointer.position(1), DType.U8, 4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("JavaCPP doesn't know the size of a " + OfNoSize.class.getName());
  }

  @Test
  void aTensorKeepsItsPointerAndReadsNothing() {
    FloatPointer pointer = new FloatPointer(new Address());
    WeakReference<Pointer> reference = new WeakReference<>(pointer);
    Tensor tensor = DevicePointers.tensor(pointer, DType.F32, 4).narrow(0, 1, 2);
    pointer = null;
    System.gc();
    assertThat(reference.get()).isNotNull();
    assertThatThrownBy(() -> tensor.getDouble(0)).isInstanceOf(UnsupportedException.class);
  }

  @Test
  void aTensorsPointerHasItsAddressAndBytes() {
    Tensor tensor = Tensor.ofDevice(ADDRESS, 1 << 10, null, DType.F32, 8, 16);
    Pointer pointer = DevicePointers.pointer(tensor.narrow(0, 2, 3));
    assertThat(pointer.address()).isEqualTo(ADDRESS + 2 * 16 * 4);
    assertThat(pointer.capacity()).isEqualTo(3 * 16 * 4);
    assertThat(pointer.limit()).isEqualTo(pointer.capacity());
    Tensor again = DevicePointers.tensor(pointer.position(64), DType.F32, 32);
    assertThat(again.address()).isEqualTo(ADDRESS + 3 * 16 * 4);
    assertThatThrownBy(() -> DevicePointers.pointer(tensor.transpose(0, 1)))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("not contiguous");
  }

  @Test
  void aPointerOfATensorKeepsIt() {
    Tensor tensor = Tensor.allocate(DType.F32, 4).fill(1.5);
    WeakReference<Tensor> reference = new WeakReference<>(tensor);
    Pointer pointer = DevicePointers.pointer(tensor);
    tensor = null;
    System.gc();
    assertThat(reference.get()).isNotNull();
    assertThat(new FloatPointer(pointer).get(3)).isEqualTo(1.5f);
    assertThat(pointer.isNull()).isFalse();
  }
}
