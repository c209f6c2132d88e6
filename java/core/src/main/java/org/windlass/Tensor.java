// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Shapes;
import org.windlass.internal.memory.Memory;

/**
 * A tensor: typed memory with a shape and strides. It is a view: {@link #narrow}, {@link #select},
 * {@link #transpose}, {@link #splitDim} and {@link #reshape} return other views of the same memory
 * and copy nothing. Dimensions and indices count from 0. Negative ones are not allowed.
 *
 * <p>The memory comes from {@link #allocate}, a {@link MemoryPool}, a {@link Window} or a device
 * ({@link #ofDevice}). It may also be a direct buffer, a memory segment, or a raw address with an
 * owner. While a call uses the tensor, its memory stays valid: a {@link #close} frees it after the
 * call, and the call keeps the owner of the memory reachable.
 *
 * <p>Reads and writes of elements are not synchronized. Access a tensor's elements only before and
 * after an operation that uses it.
 */
public sealed class Tensor implements AutoCloseable permits DistributedTensor {
  final Memory memory;
  final long address;
  final DType dtype;
  final long[] shape;
  final long[] strides;
  final long numel;
  final boolean contiguous;

  Tensor(Memory memory, long address, DType dtype, long[] shape, long[] strides) {
    this.memory = memory;
    this.address = address;
    this.dtype = dtype;
    this.shape = shape;
    this.strides = strides;
    this.numel = Shapes.numel(shape);
    this.contiguous = Shapes.contiguous(shape, strides);
  }

  /**
   * Allocates zeroed memory, aligned to 64 bytes. The memory is freed by {@link #close}, or once no
   * view of it is reachable. Operations copy it for ranks in other processes. To avoid this copy,
   * use {@link MemoryPool#allocate}.
   */
  public static Tensor allocate(DType dtype, long... shape) {
    long[] checked = ShapeChecks.checked("allocate", dtype, shape);
    Memory memory = Memory.allocate(Shapes.numel(checked) * dtype.bytes());
    return over("allocate", memory, 0, dtype, checked);
  }

  /**
   * Returns a tensor over a direct buffer, from its position. Position and limit do not change. The
   * buffer must be in native order (unless elements are bytes) and start at a multiple of the
   * element size. A read-only buffer makes a read-only tensor.
   */
  public static Tensor of(ByteBuffer buffer, DType dtype, long... shape) {
    if (!Objects.requireNonNull(buffer, "buffer").isDirect()) {
      throw new InvalidArgumentException(
          "of: buffer is on the Java heap, where peers can't reach it; use"
              + " ByteBuffer.allocateDirect, or Tensor.allocate and copyFrom");
    }
    long[] checked = ShapeChecks.checked("of", dtype, shape);
    if (dtype.bytes() > 1 && buffer.order() != ByteOrder.nativeOrder()) {
      throw new InvalidArgumentException(
          "of: buffer has " + buffer.order()
              + " order; call buffer.order(ByteOrder.nativeOrder()) before values are written to"
              + " it");
    }
    Natives.require();
    long start = NativeMemory.address(buffer) + buffer.position();
    Memory memory = Memory.of(start, buffer.remaining(), buffer.isReadOnly(), buffer);
    return over("of", memory, 0, dtype, checked);
  }

  /**
   * Returns a tensor over {@code bytes} bytes at a raw address. They must stay readable and
   * writable while {@code owner} is reachable. The tensor keeps {@code owner} reachable.
   *
   * @param owner the object that owns the memory; null if the memory is never freed
   */
  public static Tensor of(
      long address, long bytes, @Nullable Object owner, DType dtype, long... shape) {
    requireExtent("of", address, bytes);
    long[] checked = ShapeChecks.checked("of", dtype, shape);
    // The library's own packages know how long their memory lives.
    if (owner instanceof Memory memory) {
      return over("of", memory, address - memory.address, dtype, checked);
    }
    return over("of", Memory.of(address, bytes, false, owner), 0, dtype, checked);
  }

  /**
   * Returns a tensor over {@code bytes} bytes at an address of a device, for example from
   * cuMemAlloc or cudaMalloc. The bytes must stay allocated while {@code owner} is reachable. The
   * tensor keeps {@code owner} reachable. Collectives, transfers, links and windows of target
   * {@code cuda} accept such a tensor. Operations of other targets, calls that access elements from
   * Java, and other ways to move a tensor throw {@link UnsupportedException}.
   *
   * @param owner the object that owns the memory; null if the memory is never freed
   */
  public static Tensor ofDevice(
      long address, long bytes, @Nullable Object owner, DType dtype, long... shape) {
    requireExtent("ofDevice", address, bytes);
    long[] checked = ShapeChecks.checked("ofDevice", dtype, shape);
    return over("ofDevice", Memory.ofDevice(address, bytes, owner), 0, dtype, checked);
  }

  private static void requireExtent(String what, long address, long bytes) {
    if (bytes < 0 || address + bytes < address) {
      throw new InvalidArgumentException(
          what + ": bytes is " + bytes + "; it must be 0 or more");
    }
    if (address == 0 && bytes > 0) {
      throw new InvalidArgumentException(what + ": address is 0");
    }
  }

  /**
   * Returns a tensor over a native {@code java.lang.foreign.MemorySegment}, on Java 22 or later.
   * Its arena must stay open while a call uses the tensor. A call after the arena is closed throws.
   *
   * @param segment a MemorySegment; declared as Object, since Java 17 has no such type
   */
  public static Tensor ofSegment(Object segment, DType dtype, long... shape) {
    Objects.requireNonNull(segment, "segment");
    long[] checked = ShapeChecks.checked("ofSegment", dtype, shape);
    return over("ofSegment", Segments.memory(segment), 0, dtype, checked);
  }

  static Tensor over(String what, Memory memory, long offset, DType dtype, long[] shape) {
    Natives.require();
    checkFits(what, memory, offset, dtype, shape);
    return new Tensor(
        memory, memory.address + offset, dtype, shape, Shapes.contiguousStrides(shape));
  }

  static void checkFits(String what, Memory memory, long offset, DType dtype, long[] shape) {
    long needed = Shapes.numel(shape) * dtype.bytes();
    if (offset < 0 || offset > memory.bytes || needed > memory.bytes - offset) {
      throw new InvalidArgumentException(
          what + ": shape " + Arrays.toString(shape) + " of " + dtype + " needs " + needed
              + " bytes, the memory holds " + (memory.bytes - offset));
    }
    if (Long.remainderUnsigned(memory.address + offset, dtype.bytes()) != 0) {
      throw new InvalidArgumentException(
          what + ": address 0x" + Long.toHexString(memory.address + offset)
              + " is not a multiple of " + dtype.bytes() + ", the size of " + dtype
              + "; copy the bytes to aligned memory first");
    }
  }

  /** Returns another view of the same memory, of the same class as this tensor. */
  Tensor view(long viewAddress, long[] viewShape, long[] viewStrides) {
    return new Tensor(memory, viewAddress, dtype, viewShape, viewStrides);
  }

  /**
   * Returns the memory that contains this tensor. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public final Memory memory() {
    return memory;
  }

  /**
   * Returns a view with this dtype, shape and strides of other memory, from {@code otherAddress}
   * on. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public final Tensor at(Memory other, long otherAddress) {
    return new Tensor(other, otherAddress, dtype, shape, strides);
  }

  /** Returns the type of the elements. */
  public final DType dtype() {
    return dtype;
  }

  /** Returns a copy of the extents, one for each dimension. */
  public final long[] shape() {
    return shape.clone();
  }

  /** Returns a copy of the strides: for each dimension, the distance of neighbors in elements. */
  public final long[] strides() {
    return strides.clone();
  }

  /** Returns the number of dimensions. */
  public final int ndim() {
    return shape.length;
  }

  /** Returns the extent of dimension {@code dim}. */
  public final long size(int dim) {
    ShapeChecks.checkDimension("size", "dim", dim, shape.length);
    return shape[dim];
  }

  /** Returns the number of elements. */
  public final long numel() {
    return numel;
  }

  /** Returns the number of bytes of all elements, without gaps between them. */
  public final long bytes() {
    return numel * dtype.bytes();
  }

  /** Returns true if elements are adjacent in row-major order. */
  public final boolean isContiguous() {
    return contiguous;
  }

  /** Returns true if the tensor is read-only, so that no call may write to it. */
  public final boolean isReadOnly() {
    return memory.readOnly;
  }

  /** Returns true if the tensor is in a device's memory, as from {@link #ofDevice}. */
  public final boolean isOnDevice() {
    return memory.onDevice;
  }

  /**
   * Returns the address of the first element, valid until the memory is freed by {@link #close}.
   */
  public final long address() {
    return address;
  }

  /** Returns a view of {@code length} elements of dimension {@code dim}, from {@code start}. */
  public Tensor narrow(int dim, long start, long length) {
    ShapeChecks.checkDimension("narrow", "dim", dim, shape.length);
    long extent = shape[dim];
    if (start < 0 || start > extent) {
      throw new InvalidArgumentException(
          "narrow: start is " + start + "; it must lie in [0, " + extent + "]");
    }
    if (length < 0 || length > extent - start) {
      throw new InvalidArgumentException(
          "narrow: length is " + length + "; from start " + start + " it must lie in [0, "
              + (extent - start) + "]");
    }
    long[] narrowed = shape.clone();
    narrowed[dim] = length;
    long skipped = Shapes.numel(narrowed) == 0 ? 0 : start * strides[dim] * dtype.bytes();
    return view(address + skipped, narrowed, strides);
  }

  /** Returns a view of element {@code index} of dimension {@code dim}, without that dimension. */
  public Tensor select(int dim, long index) {
    ShapeChecks.checkDimension("select", "dim", dim, shape.length);
    if (index < 0 || index >= shape[dim]) {
      throw new InvalidArgumentException(
          "select: index is " + index + "; it must lie in [0, " + shape[dim] + ")");
    }
    long[] rest = Shapes.without(shape, dim);
    long skipped = Shapes.numel(rest) == 0 ? 0 : index * strides[dim] * dtype.bytes();
    return view(address + skipped, rest, Shapes.without(strides, dim));
  }

  /** Returns a view with dimensions {@code dim0} and {@code dim1} exchanged. */
  public Tensor transpose(int dim0, int dim1) {
    ShapeChecks.checkDimension("transpose", "dim0", dim0, shape.length);
    ShapeChecks.checkDimension("transpose", "dim1", dim1, shape.length);
    return view(address, Shapes.swapped(shape, dim0, dim1), Shapes.swapped(strides, dim0, dim1));
  }

  /** Returns a view with {@code dim} split into {@code sizes}, whose product is its extent. */
  public Tensor splitDim(int dim, long... sizes) {
    ShapeChecks.checkDimension("splitDim", "dim", dim, shape.length);
    Objects.requireNonNull(sizes, "sizes");
    long[] parts = ShapeChecks.checked("splitDim: sizes", DType.U8, sizes);
    if (Shapes.numel(parts) != shape[dim]) {
      throw new InvalidArgumentException(
          "splitDim: sizes " + Arrays.toString(parts) + " multiply to " + Shapes.numel(parts)
              + "; dimension " + dim + " has " + shape[dim]);
    }
    int ndim = shape.length - 1 + parts.length;
    long[] newShape = new long[ndim];
    long[] newStrides = new long[ndim];
    System.arraycopy(shape, 0, newShape, 0, dim);
    System.arraycopy(strides, 0, newStrides, 0, dim);
    long stride = strides[dim];
    for (int p = parts.length - 1; p >= 0; p--) {
      newShape[dim + p] = parts[p];
      newStrides[dim + p] = stride;
      stride *= Math.max(parts[p], 1);
    }
    System.arraycopy(shape, dim + 1, newShape, dim + parts.length, shape.length - dim - 1);
    System.arraycopy(strides, dim + 1, newStrides, dim + parts.length, shape.length - dim - 1);
    return view(address, ShapeChecks.checked("splitDim: sizes", dtype, newShape), newStrides);
  }

  /** Returns a view of this contiguous tensor with another shape of the same number of elements. */
  public Tensor reshape(long... shape) {
    long[] checked = ShapeChecks.checked("reshape", dtype, shape);
    if (Shapes.numel(checked) != numel) {
      throw new InvalidArgumentException(
          "reshape: shape " + Arrays.toString(checked) + " has " + Shapes.numel(checked)
              + " elements; the tensor has " + numel);
    }
    if (!contiguous) {
      throw new InvalidArgumentException(
          "reshape: the tensor is not contiguous; reshape before narrow or transpose, or copy it"
              + " (shape " + Arrays.toString(this.shape) + ", strides " + Arrays.toString(strides)
              + ")");
    }
    return view(address, checked, Shapes.contiguousStrides(checked));
  }

  /** Sets all elements to {@code value}, rounded once. An integer dtype must hold it exactly. */
  public final Tensor fill(double value) {
    Elements.fill(this, value);
    return this;
  }

  /**
   * Sets every element to {@code value}. A floating dtype rounds it once, but {@code value} must be
   * exact as a double. For u64, {@code value} has the 64 bits.
   */
  public final Tensor fill(long value) {
    Elements.fill(this, value);
    return this;
  }

  /** Returns the element at {@code index}, as a double. An integer is rounded; a bool is 0 or 1. */
  public final double getDouble(long... index) {
    return Elements.getDouble(this, index);
  }

  /** Sets an element to {@code value}, rounded once. An integer dtype must hold it exactly. */
  public final void setDouble(double value, long... index) {
    Elements.set(this, index, value);
  }

  /** Returns an element of an integer dtype or a bool. For u64, returns its 64 bits. */
  public final long getLong(long... index) {
    return Elements.getLong(this, index);
  }

  /** Sets an element to {@code value}, which the dtype must hold. For u64, sets its 64 bits. */
  public final void setLong(long value, long... index) {
    Elements.set(this, index, value);
  }

  /** Sets all elements from a tensor of equal shape, cast in one correctly rounded step. */
  public final Tensor copyFrom(Tensor source) {
    Elements.copy(this, source);
    return this;
  }

  /**
   * Sets all elements of a floating dtype from {@code values}, in row-major order. Each value is
   * rounded once. Here and in the other forms, array and tensor have equal lengths.
   */
  public final Tensor copyFrom(float[] values) {
    return ArrayCopy.from(this, values);
  }

  /** Sets all elements of a floating dtype, in row-major order. Each value is rounded once. */
  public final Tensor copyFrom(double[] values) {
    return ArrayCopy.from(this, values);
  }

  /** Sets all elements of a dtype of 8 bits, in row-major order, bit for bit. */
  public final Tensor copyFrom(byte[] values) {
    return ArrayCopy.from(this, values);
  }

  /** Sets all elements of a dtype of 16 bits, in row-major order, bit for bit. */
  public final Tensor copyFrom(short[] values) {
    return ArrayCopy.from(this, values);
  }

  /** Sets all elements of i32 or u32, in row-major order. */
  public final Tensor copyFrom(int[] values) {
    return ArrayCopy.from(this, values);
  }

  /** Sets all elements of i64 or u64, in row-major order. */
  public final Tensor copyFrom(long[] values) {
    return ArrayCopy.from(this, values);
  }

  /** Copies all elements to an array. Dtype and order are those of {@link #copyFrom(float[])}. */
  public final void copyTo(float[] values) {
    ArrayCopy.to(this, values);
  }

  /** Copies all elements to an array. Dtype and order are those of {@link #copyFrom(double[])}. */
  public final void copyTo(double[] values) {
    ArrayCopy.to(this, values);
  }

  /** Copies all elements to an array. Dtype and order are those of {@link #copyFrom(byte[])}. */
  public final void copyTo(byte[] values) {
    ArrayCopy.to(this, values);
  }

  /** Copies all elements to an array. Dtype and order are those of {@link #copyFrom(short[])}. */
  public final void copyTo(short[] values) {
    ArrayCopy.to(this, values);
  }

  /** Copies all elements to an array. Dtype and order are those of {@link #copyFrom(int[])}. */
  public final void copyTo(int[] values) {
    ArrayCopy.to(this, values);
  }

  /** Copies all elements to an array. Dtype and order are those of {@link #copyFrom(long[])}. */
  public final void copyTo(long[] values) {
    ArrayCopy.to(this, values);
  }

  /**
   * Returns all bytes of a contiguous tensor of up to 2 GiB; see {@link #asByteBuffer(long, int)}.
   */
  public final ByteBuffer asByteBuffer() {
    if (bytes() > Memory.MAX_BUFFER) {
      throw new InvalidArgumentException(
          "asByteBuffer: the tensor has " + bytes() + " bytes, a buffer at most "
              + Memory.MAX_BUFFER + "; use asByteBuffer(offset, length)");
    }
    return asByteBuffer(0, (int) bytes());
  }

  /**
   * Returns {@code length} bytes of a contiguous tensor from byte {@code offset} on, in native
   * order. The memory isn't freed while the buffer, or a buffer made from it, is reachable.
   */
  public final ByteBuffer asByteBuffer(long offset, int length) {
    if (!contiguous) {
      throw new InvalidArgumentException("asByteBuffer: the tensor is not contiguous");
    }
    if (offset < 0 || offset > bytes()) {
      throw new InvalidArgumentException(
          "asByteBuffer: offset is " + offset + "; it must lie in [0, " + bytes() + "]");
    }
    if (length < 0 || length > bytes() - offset) {
      throw new InvalidArgumentException(
          "asByteBuffer: length is " + length + "; from offset " + offset + " it must lie in [0, "
              + (bytes() - offset) + "]");
    }
    if (memory.onDevice) {
      throw onDevice("asByteBuffer", "the tensor");
    }
    ByteBuffer buffer = memory.lend(address - memory.address + offset, length);
    Reference.reachabilityFence(this);
    if (buffer == null) {
      throw closed("asByteBuffer", "the tensor");
    }
    return buffer;
  }

  final RuntimeException onDevice(String what, String name) {
    return memory.notOfHost(what + ": " + name + " (" + this + ")");
  }

  final ClosedException closed(String what, String name) {
    return new ClosedException(
        what + ": " + name + " (" + this + ") is over memory that " + memory.ending());
  }

  /**
   * Frees memory of {@link #allocate} or {@link MemoryPool#allocate}, for every view of it. Later
   * calls with such a view throw {@link ClosedException}. The memory is freed once the last call
   * that uses it is over. Memory of a window or of the caller is not freed.
   */
  @Override
  public void close() {
    memory.endIfAllocated();
  }

  /** Returns dtype and shape, such as {@code f32[4, 1024]}. */
  @Override
  public final String toString() {
    return dtype + Arrays.toString(shape);
  }
}
