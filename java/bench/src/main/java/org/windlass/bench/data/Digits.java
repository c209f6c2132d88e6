// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

/**
 * Generates and checks values for operations that do arithmetic. Each element is one of eight small
 * numbers, selected by its digit, which each iteration rotates. The result of reductions and casts
 * depends only on the digit. Eight expected elements therefore suffice to check a tensor of any
 * size.
 */
public final class Digits {
  static final int COUNT = 8;
  private static final long GOLDEN = 0x9e3779b97f4a7c15L;

  /** Difference between the digits of one element on two ranks that hold terms of it. */
  private static final int TERM_STEP = 3;

  private Digits() {}

  /** Returns the digit in iteration 0 of the element at {@code index} of a global tensor. */
  public static int of(long index) {
    return (int) (index * GOLDEN >>> 61);
  }

  /** Returns the digit of a term of an element, for ranks that hold terms. */
  public static int of(long index, int term) {
    return of(index) + TERM_STEP * term & COUNT - 1;
  }

  /** Returns the bits of an element for each digit: small integers, exact in every dtype. */
  public static long[] encode(DType dtype, ReduceOp op) {
    return encode(values(dtype, op), dtype);
  }

  /**
   * Returns the bits of a reduced element for each digit of its first term. The {@code terms} terms
   * are reduced in ascending order, rounded to {@code dtype}, and cast along {@code casts}.
   */
  public static long[] encodeReduced(DType dtype, ReduceOp op, int terms, DType... casts) {
    double[] values = values(dtype, op);
    double[] reduced = new double[COUNT];
    for (int digit = 0; digit < COUNT; digit++) {
      double sum = values[digit];
      for (int term = 1; term < terms; term++) {
        sum = apply(op, dtype, sum, values[digit + TERM_STEP * term & COUNT - 1]);
      }
      reduced[digit] = op == ReduceOp.AVG ? accumulated(dtype, sum / terms) : sum;
    }
    return encode(reduced, dtype, casts);
  }

  private static double[] values(DType dtype, ReduceOp op) {
    double[] values = new double[COUNT];
    for (int digit = 0; digit < COUNT; digit++) {
      if (dtype == DType.BOOL) {
        values[digit] = digit & 1;
      } else {
        values[digit] = op == ReduceOp.PRODUCT ? 1 + (digit & 1) : digit;
      }
    }
    return values;
  }

  private static double apply(ReduceOp op, DType dtype, double a, double b) {
    return switch (op) {
      case SUM, AVG -> accumulated(dtype, a + b);
      case PRODUCT -> accumulated(dtype, a * b);
      case MAX -> Math.max(a, b);
      case MIN -> Math.min(a, b);
    };
  }

  /** Rounds to the accumulator of {@code dtype}: f64 for f64, f32 for other floats. */
  private static double accumulated(DType dtype, double value) {
    return dtype == DType.F64 || !dtype.isFloating() ? value : (float) value;
  }

  private static long[] encode(double[] values, DType dtype, DType... casts) {
    long[] bits = new long[COUNT];
    if (!dtype.canCast(DType.F64)) {
      for (int digit = 0; digit < COUNT; digit++) {
        bits[digit] = wrapped(values[digit]) & mask(dtype);
      }
      return bits;
    }
    Tensor tensor = Tensor.allocate(DType.F64, COUNT);
    tensor.copyFrom(values);
    tensor = cast(tensor, dtype);
    for (DType to : casts) {
      tensor = cast(tensor, to);
    }
    ByteBuffer memory = Buffers.bytesOf(tensor);
    for (int digit = 0; digit < COUNT; digit++) {
      bits[digit] = bitsAt(memory, digit, tensor.dtype().bytes());
    }
    return bits;
  }

  private static Tensor cast(Tensor from, DType to) {
    Tensor cast = Tensor.allocate(to, COUNT);
    cast.copyFrom(from);
    return cast;
  }

  /** Returns the low 64 bits of an integer. An infinite value is a power of two beyond 2^64. */
  private static long wrapped(double value) {
    return Double.isInfinite(value) ? 0 : new BigDecimal(value).toBigInteger().longValue();
  }

  private static long mask(DType dtype) {
    return dtype.bits() == 64 ? -1L : (1L << dtype.bits()) - 1;
  }

  static long bitsAt(ByteBuffer memory, int index, int elementBytes) {
    return switch (elementBytes) {
      case 1 -> memory.get(index) & 0xffL;
      case 2 -> memory.getShort(2 * index) & 0xffffL;
      case 4 -> memory.getInt(4 * index) & 0xffffffffL;
      default -> memory.getLong(8 * index);
    };
  }

  private static void put(ByteBuffer memory, int index, int elementBytes, long bits) {
    switch (elementBytes) {
      case 1 -> memory.put(index, (byte) bits);
      case 2 -> memory.putShort(2 * index, (short) bits);
      case 4 -> memory.putInt(4 * index, (int) bits);
      default -> memory.putLong(8 * index, bits);
    }
  }

  /** Writes the elements whose digits in iteration 0 are {@code digits}. Allocates nothing. */
  public static void write(
      ByteBuffer memory, byte[] digits, long[] bits, int elementBytes, long iteration) {
    for (int i = 0; i < digits.length; i++) {
      put(memory, i, elementBytes, bits[digits[i] + (int) iteration & COUNT - 1]);
    }
  }

  /** Writes all of {@code memory} as a term of the elements from 0 on. Allocates nothing. */
  public static void write(
      ByteBuffer memory, int term, long[] bits, int elementBytes, long iteration) {
    int count = memory.limit() / elementBytes;
    for (int i = 0; i < count; i++) {
      put(memory, i, elementBytes, bits[of(i, term) + (int) iteration & COUNT - 1]);
    }
  }

  /**
   * Returns the first element that differs from the value of its digit in {@code iteration}, or -1
   * if there is none. {@code memory} holds the elements from {@code first} on.
   */
  public static int mismatch(
      ByteBuffer memory, long first, long[] bits, int elementBytes, long iteration) {
    int count = memory.limit() / elementBytes;
    for (int i = 0; i < count; i++) {
      if (bitsAt(memory, i, elementBytes) != bits[of(first + i) + (int) iteration & COUNT - 1]) {
        return i;
      }
    }
    return -1;
  }

  /**
   * Returns the first element that differs from the value of its digit in {@code iteration}, or -1.
   */
  public static int mismatch(
      ByteBuffer memory, byte[] digits, long[] bits, int elementBytes, long iteration) {
    for (int i = 0; i < digits.length; i++) {
      if (bitsAt(memory, i, elementBytes) != bits[digits[i] + (int) iteration & COUNT - 1]) {
        return i;
      }
    }
    return -1;
  }
}
