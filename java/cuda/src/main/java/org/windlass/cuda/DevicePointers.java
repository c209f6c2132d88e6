// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Objects;
import org.bytedeco.javacpp.Pointer;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;

/** Converts JavaCPP pointers to device memory into tensors, and tensors into such pointers. */
public final class DevicePointers {
  private DevicePointers() {}

  /**
   * Returns a tensor over device memory that starts at {@code pointer}'s position, like {@link
   * Tensor#ofDevice}. If the pointer has a limit, the limit gives the number of bytes. A pointer
   * from cudaMalloc has no limit; its memory must hold all bytes of the shape. The tensor keeps
   * {@code pointer} reachable, and frees nothing. Free the memory only after the last use of the
   * tensor.
   *
   * @throws InvalidArgumentException if {@code pointer} is a null pointer, or holds too few bytes
   */
  public static Tensor tensor(Pointer pointer, DType dtype, long... shape) {
    Objects.requireNonNull(pointer, "pointer");
    Objects.requireNonNull(dtype, "dtype");
    Objects.requireNonNull(shape, "shape");
    if (pointer.isNull()) {
      throw new InvalidArgumentException("tensor: pointer is null, as before cudaMalloc");
    }
    long size = elementBytes(pointer);
    long address = Math.addExact(pointer.address(), Math.multiplyExact(pointer.position(), size));
    long bytes =
        pointer.limit() > 0
            ? Math.multiplyExact(Math.max(0, pointer.limit() - pointer.position()), size)
            : bytesOf(dtype, shape);
    return Tensor.ofDevice(address, bytes, pointer, dtype, shape);
  }

  /**
   * Returns the number of bytes by which one step of the pointer's position moves the address. If
   * the position is 0, the result does not matter.
   */
  private static long elementBytes(Pointer pointer) {
    int size = pointer.sizeof();
    if (size <= 0 && (pointer.position() != 0 || pointer.limit() > 0)) {
      throw new InvalidArgumentException(
          "tensor: pointer has position " + pointer.position() + " and limit " + pointer.limit()
              + ", and JavaCPP doesn't know the size of a " + pointer.getClass().getName()
              + "; give new Pointer(pointer), which counts bytes");
    }
    return size;
  }

  private static long bytesOf(DType dtype, long[] shape) {
    try {
      long numel = 1;
      for (long extent : shape) {
        numel = Math.multiplyExact(numel, extent);
      }
      return Math.max(0, Math.multiplyExact(numel, dtype.bytes()));
    } catch (ArithmeticException e) {
      return 0;
    }
  }

  /**
   * Returns a pointer to the first element of a contiguous tensor. Its capacity is the tensor's
   * size in bytes. The pointer keeps the tensor reachable, and frees nothing.
   *
   * @throws InvalidArgumentException if the tensor is not contiguous
   */
  public static Pointer pointer(Tensor tensor) {
    if (!Objects.requireNonNull(tensor, "tensor").isContiguous()) {
      throw new InvalidArgumentException(
          "pointer: the tensor (" + tensor + ") is not contiguous; pass a contiguous part");
    }
    return new TensorPointer(tensor);
  }

  private static final class TensorPointer extends Pointer {
    @SuppressWarnings("unused") // which is what keeps it reachable
    private final Tensor tensor;

    TensorPointer(Tensor tensor) {
      this.tensor = tensor;
      address = tensor.address();
      limit = tensor.bytes();
      capacity = limit;
    }

    @Override
    public int sizeof() {
      return 1;
    }
  }
}
