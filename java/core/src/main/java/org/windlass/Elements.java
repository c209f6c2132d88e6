// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;

final class Elements {
  private static final long[] SCALAR = {};

  private Elements() {}

  static void fill(Tensor tensor, double value) {
    try (Scratch scratch = Scratch.take()) {
      encode("fill", scratch, tensor.dtype, value);
      fill(tensor, scratch);
    }
  }

  static void fill(Tensor tensor, long value) {
    try (Scratch scratch = Scratch.take()) {
      encode("fill", scratch, tensor.dtype, value);
      fill(tensor, scratch);
    }
  }

  private static void fill(Tensor tensor, Scratch scratch) {
    hold("fill", "the tensor", tensor, true);
    try {
      long target = describe(scratch, 0, tensor);
      check(Native.wl_tensor_fill(target, scratch.element(), scratch.error()), scratch);
    } finally {
      release(tensor);
    }
  }

  static double getDouble(Tensor tensor, long[] index) {
    DType dtype = tensor.dtype;
    if (dtype.isInteger() || dtype == DType.BOOL) {
      long value = integer("getDouble", tensor, index);
      return dtype == DType.U64 && value < 0 ? (value >>> 1 | value & 1) * 2.0 : (double) value;
    }
    requireCast("getDouble", dtype, DType.F64);
    try (Scratch scratch = Scratch.take()) {
      copyElement("getDouble", scratch, tensor, index, DType.F64, false);
      return scratch.elementDouble();
    }
  }

  static long getLong(Tensor tensor, long[] index) {
    DType dtype = tensor.dtype;
    if (!dtype.isInteger() && dtype != DType.BOOL) {
      throw new InvalidArgumentException("getLong: dtype is " + dtype + "; use getDouble");
    }
    return integer("getLong", tensor, index);
  }

  private static long integer(String what, Tensor tensor, long[] index) {
    DType dtype = tensor.dtype;
    try (Scratch scratch = Scratch.take()) {
      scratch.elementLong(0);
      copyElement(what, scratch, tensor, index, dtype, false);
      long bits = scratch.elementLong();
      return switch (dtype) {
        case I8 -> (byte) bits;
        case I16 -> (short) bits;
        case I32 -> (int) bits;
        default -> bits;
      };
    }
  }

  static void set(Tensor tensor, long[] index, double value) {
    try (Scratch scratch = Scratch.take()) {
      encode("setDouble", scratch, tensor.dtype, value);
      copyElement("setDouble", scratch, tensor, index, tensor.dtype, true);
    }
  }

  static void set(Tensor tensor, long[] index, long value) {
    try (Scratch scratch = Scratch.take()) {
      encode("setLong", scratch, tensor.dtype, value);
      copyElement("setLong", scratch, tensor, index, tensor.dtype, true);
    }
  }

  static void copy(Tensor target, Tensor source) {
    Objects.requireNonNull(source, "source");
    if (!Arrays.equals(target.shape, source.shape)) {
      throw new InvalidArgumentException(
          "copyFrom: source is " + source + ", the tensor " + target + "; shapes must agree");
    }
    if (!source.dtype.canCast(target.dtype)) {
      throw new InvalidArgumentException(
          "copyFrom: source has dtype " + source.dtype + ", which cannot become " + target.dtype);
    }
    hold("copyFrom", "source", source, false);
    try {
      hold("copyFrom", "the tensor", target, true);
      try (Scratch scratch = Scratch.take()) {
        long to = describe(scratch, 0, target);
        long from = describe(scratch, 1, source);
        check(Native.wl_tensor_copy(to, from, scratch.error()), scratch);
      } finally {
        release(target);
      }
    } finally {
      release(source);
    }
  }

  /** Copies an element from the tensor to {@code scratch}, or back if {@code write} is true. */
  private static void copyElement(
      String what, Scratch scratch, Tensor tensor, long[] index, DType dtype, boolean write) {
    long at = tensor.address + offset(what, tensor, index) * tensor.dtype.bytes();
    hold(what, "the tensor", tensor, write);
    try {
      long in = scratch.tensor(write ? 0 : 1, tensor.dtype.code(), at, SCALAR, SCALAR);
      long own = scratch.tensor(write ? 1 : 0, dtype.code(), scratch.element(), SCALAR, SCALAR);
      int code = Native.wl_tensor_copy(write ? in : own, write ? own : in, scratch.error());
      check(code, scratch);
    } finally {
      release(tensor);
    }
  }

  /** Writes a value to the element of {@code scratch}. Throws if an integer dtype can't hold it. */
  private static void encode(String what, Scratch scratch, DType dtype, double value) {
    if (dtype.isInteger() || dtype == DType.BOOL) {
      boolean fits = value == Math.rint(value) && value >= -0x1p63 && value < 0x1p63;
      if (dtype == DType.U64) {
        fits &= value >= 0;
      }
      if (!fits) {
        throw unfit(what, dtype, Double.toString(value));
      }
      encode(what, scratch, dtype, (long) value);
      return;
    }
    requireCast(what, DType.F64, dtype);
    scratch.elementDouble(value);
    long element = scratch.element();
    long from = scratch.tensor(1, DType.F64.code(), element, SCALAR, SCALAR);
    long to = scratch.tensor(0, dtype.code(), scratch.encoded(), SCALAR, SCALAR);
    check(Native.wl_tensor_copy(to, from, scratch.error()), scratch);
    scratch.takeEncoded();
  }

  private static void encode(String what, Scratch scratch, DType dtype, long value) {
    boolean fits =
        switch (dtype) {
          case BOOL -> value == 0 || value == 1;
          case I8 -> value == (byte) value;
          case U8 -> value == (value & 0xff);
          case I16 -> value == (short) value;
          case U16 -> value == (value & 0xffff);
          case I32 -> value == (int) value;
          case U32 -> value == (value & 0xffffffffL);
          case I64, U64 -> true;
          default -> value != Long.MAX_VALUE && (long) (double) value == value;
        };
    if (!fits) {
      throw unfit(what, dtype, Long.toString(value));
    }
    if (dtype.isInteger() || dtype == DType.BOOL) {
      scratch.elementLong(value);
    } else {
      encode(what, scratch, dtype, (double) value);
    }
  }

  private static InvalidArgumentException unfit(String what, DType dtype, String value) {
    return new InvalidArgumentException(
        what + ": value is " + value + ", which " + dtype + " cannot hold");
  }

  private static void requireCast(String what, DType from, DType to) {
    if (!from.canCast(to)) {
      DType other = from == DType.F64 ? to : from;
      throw new UnsupportedException(
          what + ": dtype is " + other
              + ", whose values have no arithmetic; copy its bits instead");
    }
  }

  private static long offset(String what, Tensor tensor, long[] index) {
    if (Objects.requireNonNull(index, "index").length != tensor.shape.length) {
      throw new InvalidArgumentException(
          what + ": index has " + index.length + " dimensions, the tensor has "
              + tensor.shape.length);
    }
    long offset = 0;
    for (int d = 0; d < index.length; d++) {
      if (index[d] < 0 || index[d] >= tensor.shape[d]) {
        throw new InvalidArgumentException(
            what + ": index[" + d + "] is " + index[d] + "; it must lie in [0, " + tensor.shape[d]
                + ")");
      }
      offset += index[d] * tensor.strides[d];
    }
    return offset;
  }

  static long describe(Scratch scratch, int slot, Tensor tensor) {
    return scratch.tensor(slot, tensor.dtype.code(), tensor.address, tensor.shape, tensor.strides);
  }

  /**
   * Pins the tensor's memory for a call; the caller unpins it. Throws if the call can't use the
   * memory.
   */
  static void hold(String what, String name, Tensor tensor, boolean write) {
    if (write && tensor.memory.readOnly) {
      throw new InvalidArgumentException(what + ": " + name + " is read-only");
    }
    if (tensor.memory.onDevice) {
      throw tensor.onDevice(what, name);
    }
    if (!tensor.memory.hold()) {
      throw tensor.closed(what, name);
    }
  }

  static void release(Tensor tensor) {
    tensor.memory.unpin();
    Reference.reachabilityFence(tensor);
  }

  static void check(int code, Scratch scratch) {
    Failures.check(code, scratch);
  }
}
