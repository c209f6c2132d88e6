// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Native memory for the arguments of one native call: an error record, an out-parameter, two tensor
 * descriptions and one element. It comes from a small lock-free pool. Only one thread at a time
 * uses a Scratch. An {@link org.windlass.internal.call.Endpoint} keeps one Scratch for all its
 * calls.
 */
public final class Scratch implements AutoCloseable {
  private static final int MAX_DIMS = Native.WL_MAX_DIMS;
  private static final int TENSOR_BYTES = Structs.Tensor.SIZE + 2 * 8 * MAX_DIMS;
  private static final int OUT = (Structs.Error.SIZE + 7) & ~7;
  private static final int ELEMENT = OUT + 8;
  private static final int ENCODED = ELEMENT + 8;
  private static final int TENSORS = ENCODED + 8;
  private static final int CONFIG = TENSORS + 2 * TENSOR_BYTES;
  private static final int CONFIG_BYTES =
      Math.max(Structs.TransferConfig.SIZE, Structs.Record.SIZE);
  private static final int SIZE = CONFIG + CONFIG_BYTES;

  private static final AtomicReferenceArray<Scratch> POOL = new AtomicReferenceArray<>(16);

  private final ByteBuffer buffer = Structs.allocate(SIZE);
  private final ByteBuffer error = buffer.duplicate().order(buffer.order());
  private final long address = NativeMemory.address(buffer);

  private Scratch() {
    buffer.putInt(0, Structs.Error.SIZE);
  }

  public static Scratch take() {
    for (int i = 0; i < POOL.length(); i++) {
      if (POOL.getPlain(i) != null) {
        Scratch scratch = POOL.getAndSet(i, null);
        if (scratch != null) {
          return scratch;
        }
      }
    }
    return new Scratch();
  }

  @Override
  public void close() {
    for (int i = 0; i < POOL.length(); i++) {
      if (POOL.getPlain(i) == null && POOL.compareAndSet(i, null, this)) {
        return;
      }
    }
  }

  /** Returns the address of a {@code wl_error_t} that is ready for a call. */
  public long error() {
    return address;
  }

  public ByteBuffer errorBuffer() {
    return error;
  }

  /** Returns the address of 8 bytes for a call's result, set to zero. */
  public long out() {
    buffer.putLong(OUT, 0);
    return address + OUT;
  }

  /** Returns the address of 8 bytes for a call's result, set to {@code value}. */
  public long out(long value) {
    buffer.putLong(OUT, value);
    return address + OUT;
  }

  public long outValue() {
    return buffer.getLong(OUT);
  }

  /** Returns the address of 8 bytes for one element of a tensor, called the scratch element. */
  public long element() {
    return address + ELEMENT;
  }

  /** Returns the address of 8 bytes that {@link #takeEncoded} copies to the scratch element. */
  public long encoded() {
    return address + ENCODED;
  }

  public void takeEncoded() {
    buffer.putLong(ELEMENT, buffer.getLong(ENCODED));
  }

  public double elementDouble() {
    return buffer.getDouble(ELEMENT);
  }

  public void elementDouble(double value) {
    buffer.putDouble(ELEMENT, value);
  }

  public long elementLong() {
    return buffer.getLong(ELEMENT);
  }

  /**
   * Writes {@code value} to the scratch element in little-endian order. The low bytes of the
   * scratch element are then the value in any narrower integer type.
   */
  public void elementLong(long value) {
    buffer.putLong(ELEMENT, value);
  }

  /** Fills in description {@code slot}, 0 or 1: a {@code wl_tensor_t}. Returns its address. */
  public long tensor(int slot, int dtype, long data, long[] shape, long[] strides) {
    int at = TENSORS + slot * TENSOR_BYTES;
    int shapeAt = at + Structs.Tensor.SIZE;
    int stridesAt = shapeAt + 8 * MAX_DIMS;
    buffer.putInt(at, Structs.Tensor.SIZE);
    buffer.putInt(at + Structs.Tensor.DTYPE, dtype);
    buffer.putInt(at + Structs.Tensor.NDIM, shape.length);
    buffer.putLong(at + Structs.Tensor.DATA, data);
    buffer.putLong(at + Structs.Tensor.SHAPE, address + shapeAt);
    buffer.putLong(at + Structs.Tensor.STRIDES, address + stridesAt);
    for (int d = 0; d < shape.length; d++) {
      buffer.putLong(shapeAt + 8 * d, shape[d]);
      buffer.putLong(stridesAt + 8 * d, strides[d]);
    }
    return address + at;
  }

  /**
   * Returns the address of a zeroed struct of {@code size} bytes, whose first field has that size.
   * It serves as a configuration or as the result of a query.
   */
  public long config(int size) {
    for (int i = 0; i < CONFIG_BYTES; i += 4) {
      buffer.putInt(CONFIG + i, 0);
    }
    buffer.putInt(CONFIG, size);
    return address + CONFIG;
  }

  public void configInt(int field, int value) {
    buffer.putInt(CONFIG + field, value);
  }

  public void configLong(int field, long value) {
    buffer.putLong(CONFIG + field, value);
  }

  public int configInt(int field) {
    return buffer.getInt(CONFIG + field);
  }

  public long configLong(int field) {
    return buffer.getLong(CONFIG + field);
  }
}
