// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Shapes;
import org.windlass.internal.memory.Memory;

/**
 * A tensor: typed memory with a shape and strides. It is a view: {@link #narrow}, {@link #select},
 * {@link #transpose}, {@link #splitDim} and {@link #reshape} make others over the same memory and
 * copy nothing.
 *
 * <p>The memory is Windlass's own ({@link #allocate}), a {@link MemoryPool}'s, a direct buffer, a
 * raw address with an owner, a device's ({@link #ofDevice}), a memory segment, or a {@link
 * Window}'s. While a call uses it, it
 * stays: {@link #close} in the middle defers the release, and whatever the memory belongs to is kept
 * reachable.
 *
 * <p>Reading and writing elements is not synchronised with anything: keep to the completion
 * contract of the operation that names the tensor.
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
   * Zeroed memory of Windlass's own, aligned to 64 bytes. It is freed by {@link #close}, or once no
   * view of it is reachable. Ranks in other processes get at it by a copy; {@link
   * MemoryPool#allocate} gives memory that they map.
   */
  public static Tensor allocate(DType dtype, long... shape) {
    long[] checked = ShapeChecks.checked("allocate", dtype, shape);
    Memory memory = Memory.allocate(Shapes.numel(checked) * dtype.bytes());
    return over("allocate", memory, 0, dtype, checked);
  }

  /**
   * A tensor over a direct buffer, from its position on; position and limit stay as they are. The
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
   * A tensor over {@code bytes} bytes at a raw address. They must stay readable and writable as
   * long as {@code owner} is reachable; the tensor keeps it so.
   *
   * @param owner what the memory belongs to; null if it is never freed
   */
  public static Tensor of(long address, long bytes, Object owner, DType dtype, long... shape) {
    requireExtent("of", address, bytes);
    long[] checked = ShapeChecks.checked("of", dtype, shape);
    // The library's own packages know how long their memory lives.
    if (owner instanceof Memory memory) {
      return over("of", memory, address - memory.address, dtype, checked);
    }
    return over("of", Memory.of(address, bytes, false, owner), 0, dtype, checked);
  }

  /**
   * A tensor over {@code bytes} bytes of a device's memory at an address of the device, such as
   * those that cuMemAlloc and cudaMalloc give. They must stay allocated as long as {@code owner} is
   * reachable; the tensor keeps it so. Collectives, transfers, links and windows of target {@code
   * cuda} take it. What reads or writes elements from Java, and whatever else moves tensors, throws
   * {@link UnsupportedException}, as operations of other targets do.
   *
   * @param owner what the memory belongs to; null if it is never freed
   */
  public static Tensor ofDevice(
      long address, long bytes, Object owner, DType dtype, long... shape) {
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
   * A tensor over a native {@code java.lang.foreign.MemorySegment}, on Java 22 or later. Its arena
   * must stay open while a call uses the tensor, and is seen to be closed at the next call.
   *
   * @param segment a MemorySegment; its type is named here only because Java 17 has none
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

  /** Whether a contiguous tensor of a checked shape fits at {@code offset} and is aligned there. */
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
              + "; copy such bytes to aligned memory first");
    }
  }

  /** A tensor over the same memory; window tensors stay window tensors. */
  Tensor view(long viewAddress, long[] viewShape, long[] viewStrides) {
    return new Tensor(memory, viewAddress, dtype, viewShape, viewStrides);
  }

  /**
   * The memory that this tensor lies in. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public final Memory memory() {
    return memory;
  }

  /**
   * The same view of other memory, where its first element is at {@code otherAddress}. For packages
   * of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public final Tensor at(Memory other, long otherAddress) {
    return new Tensor(other, otherAddress, dtype, shape, strides);
  }

  /** The type of its elements. */
  public final DType dtype() {
    return dtype;
  }

  /** Extents, one a dimension; a copy. */
  public final long[] shape() {
    return shape.clone();
  }

  /** Distance between neighbours of each dimension, in elements; a copy. */
  public final long[] strides() {
    return strides.clone();
  }

  /** Number of dimensions. */
  public final int ndim() {
    return shape.length;
  }

  /** Extent of dimension {@code dim}. */
  public final long size(int dim) {
    ShapeChecks.checkDimension("size", "dim", dim, shape.length);
    return shape[dim];
  }

  /** Number of elements. */
  public final long numel() {
    return numel;
  }

  /** Bytes of all elements, without what lies between them. */
  public final long bytes() {
    return numel * dtype.bytes();
  }

  /** Whether elements lie side by side in row-major order. */
  public final boolean isContiguous() {
    return contiguous;
  }

  /** Whether calls may only read it. */
  public final boolean isReadOnly() {
    return memory.readOnly;
  }

  /** Whether it lies in a device's memory: {@link #ofDevice}. */
  public final boolean isOnDevice() {
    return memory.onDevice;
  }

  /** Address of the first element. It is valid only while the memory is: see {@link #close}. */
  public final long address() {
    return address;
  }

  /** The {@code length} elements from {@code start} on of dimension {@code dim}. */
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

  /** Element {@code index} of dimension {@code dim}, which goes away. */
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

  /** Dimensions {@code dim0} and {@code dim1} exchanged. */
  public Tensor transpose(int dim0, int dim1) {
    ShapeChecks.checkDimension("transpose", "dim0", dim0, shape.length);
    ShapeChecks.checkDimension("transpose", "dim1", dim1, shape.length);
    return view(address, Shapes.swapped(shape, dim0, dim1), Shapes.swapped(strides, dim0, dim1));
  }

  /** Dimension {@code dim} as several, whose extents multiply to its own. */
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

  /** The same elements in row-major order under another shape; contiguous tensors only. */
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

  /** Sets every element; integers must hold {@code value} exactly. */
  public final Tensor fill(double value) {
    Elements.fill(this, value);
    return this;
  }

  /**
   * Sets every element; floating dtypes round it once, of what a double holds exactly. For u64 it
   * stands for its 64 bits.
   */
  public final Tensor fill(long value) {
    Elements.fill(this, value);
    return this;
  }

  /** An element of a floating dtype, an integer rounded to double, or a bool as 0 or 1. */
  public final double getDouble(long... index) {
    return Elements.getDouble(this, index);
  }

  /** Sets an element, rounded once; an integer dtype must hold {@code value} exactly. */
  public final void setDouble(double value, long... index) {
    Elements.set(this, index, value);
  }

  /** An element of an integer dtype or a bool; u64 as its 64 bits. */
  public final long getLong(long... index) {
    return Elements.getLong(this, index);
  }

  /** Sets an element; the dtype must hold {@code value}; u64 takes its 64 bits. */
  public final void setLong(long value, long... index) {
    Elements.set(this, index, value);
  }

  /** Sets all elements from another tensor of equal shape, cast in one correctly rounded step. */
  public final Tensor copyFrom(Tensor source) {
    Elements.copy(this, source);
    return this;
  }

  /** Sets all elements of a floating dtype, in row-major order. */
  public final Tensor copyFrom(float[] values) {
    ArrayCopy.from(this, values);
    return this;
  }

  /** Sets all elements of a floating dtype, in row-major order. */
  public final Tensor copyFrom(double[] values) {
    ArrayCopy.from(this, values);
    return this;
  }

  /** Sets all elements of a one-byte dtype, bit for bit. */
  public final Tensor copyFrom(byte[] values) {
    ArrayCopy.from(this, values);
    return this;
  }

  /** Sets all elements of a two-byte dtype, bit for bit. */
  public final Tensor copyFrom(short[] values) {
    ArrayCopy.from(this, values);
    return this;
  }

  /** Sets all elements of i32 or u32. */
  public final Tensor copyFrom(int[] values) {
    ArrayCopy.from(this, values);
    return this;
  }

  /** Sets all elements of i64 or u64. */
  public final Tensor copyFrom(long[] values) {
    ArrayCopy.from(this, values);
    return this;
  }

  /** The counterpart of {@link #copyFrom(float[])}. */
  public final void copyTo(float[] values) {
    ArrayCopy.to(this, values);
  }

  /** The counterpart of {@link #copyFrom(double[])}. */
  public final void copyTo(double[] values) {
    ArrayCopy.to(this, values);
  }

  /** The counterpart of {@link #copyFrom(byte[])}. */
  public final void copyTo(byte[] values) {
    ArrayCopy.to(this, values);
  }

  /** The counterpart of {@link #copyFrom(short[])}. */
  public final void copyTo(short[] values) {
    ArrayCopy.to(this, values);
  }

  /** The counterpart of {@link #copyFrom(int[])}. */
  public final void copyTo(int[] values) {
    ArrayCopy.to(this, values);
  }

  /** The counterpart of {@link #copyFrom(long[])}. */
  public final void copyTo(long[] values) {
    ArrayCopy.to(this, values);
  }

  /** All bytes of a contiguous tensor of up to 2 GiB; see {@link #asByteBuffer(long, int)}. */
  public final ByteBuffer asByteBuffer() {
    if (bytes() > Memory.MAX_BUFFER) {
      throw new InvalidArgumentException(
          "asByteBuffer: the tensor has " + bytes() + " bytes, a buffer at most "
              + Memory.MAX_BUFFER + "; use asByteBuffer(offset, length)");
    }
    return asByteBuffer(0, (int) bytes());
  }

  /**
   * {@code length} bytes of a contiguous tensor from byte {@code offset} on, in native order. The
   * memory isn't released while the buffer, or anything made from it, is reachable.
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

  /** What a call says that takes tensors of the host alone. */
  final RuntimeException onDevice(String what, String name) {
    return memory.notOfHost(what + ": " + name + " (" + this + ")");
  }

  /** What a call says that finds the memory gone. */
  final ClosedException closed(String what, String name) {
    return new ClosedException(
        what + ": " + name + " (" + this + ") is over memory that " + memory.ending());
  }

  /**
   * Ends memory that {@link #allocate} or {@link MemoryPool#allocate} made, for every view of it:
   * later use throws {@link ClosedException}; the memory goes when the last call that uses it is
   * over. Memory of a window or of the caller's own stays.
   */
  @Override
  public void close() {
    memory.endIfAllocated();
  }

  /** Dtype and shape, such as {@code f32[4, 1024]}. */
  @Override
  public final String toString() {
    return dtype + Arrays.toString(shape);
  }
}
