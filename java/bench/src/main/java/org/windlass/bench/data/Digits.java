// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

/**
 * Generates and checks values for operations that do arithmetic. Each element has a digit, which is
 * a number from 0 to 7. Each iteration adds to it, modulo 8. A table gives a small value for each
 * digit. So the result of reductions and casts depends only on the digit, and eight expected values
 * are enough to check a tensor of any size.
 */
public final class Digits {
  static final int COUNT = 8;
  private static final long GOLDEN = 0x9e3779b97f4a7c15L;

  /** Difference modulo 8 between an element's digits in two consecutive terms of a reduction. */
  private static final int TERM_STEP = 3;

  private Digits() {}

  /** Returns the digit that the element at {@code index} of a global tensor has in iteration 0. */
  public static int of(long index) {
    return (int) (index * GOLDEN >>> 61);
  }

  /** Returns the digit in iteration 0 of the element at {@code index} in term {@code term}. */
  public static int of(long index, int term) {
    return of(index) + TERM_STEP * term & COUNT - 1;
  }

  /** Returns the bits of the value of each digit: a small integer, exact in every dtype. */
  public static long[] encode(DType dtype, ReduceOp op) {
    return encode(values(dtype, op), dtype);
  }

  /**
   * Returns the bits of a reduced element, for each digit that the element has in term 0.
   *
   * @param terms number of terms, which are reduced in ascending order and rounded to {@code dtype}
   * @param casts dtypes to which the result is then cast, one after another
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
      case AND -> (long) a & (long) b;
      case OR -> (long) a | (long) b;
      case XOR -> (long) a ^ (long) b;
    };
  }

  /**
   * Rounds to the precision in which {@code dtype} is reduced: f64 for f64, and f32 for other
   * floats.
   */
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

  /**
   * Returns the low 64 bits of an integer. Infinity stands for an even larger power of two, so it
   * gives 0.
   */
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

  /**
   * Writes elements. Allocates nothing.
   *
   * @param digits each element's digit in iteration 0
   * @param bits the bits for each digit
   */
  public static void write(
      ByteBuffer memory, byte[] digits, long[] bits, int elementBytes, long iteration) {
    for (int i = 0; i < digits.length; i++) {
      put(memory, i, elementBytes, bits[digits[i] + (int) iteration & COUNT - 1]);
    }
  }

  /**
   * Fills {@code memory} with term {@code term} of the elements from index 0 on. Allocates nothing.
   *
   * @param bits the bits for each digit
   */
  public static void write(
      ByteBuffer memory, int term, long[] bits, int elementBytes, long iteration) {
    int count = memory.limit() / elementBytes;
    for (int i = 0; i < count; i++) {
      put(memory, i, elementBytes, bits[of(i, term) + (int) iteration & COUNT - 1]);
    }
  }

  /**
   * Compares elements with their expected values.
   *
   * @param first index in the global tensor of the first element in {@code memory}
   * @param bits the expected bits for each digit
   * @return index in {@code memory} of the first wrong element, or -1 if all are right
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
   * Compares elements with their expected values.
   *
   * @param digits each element's digit in iteration 0
   * @param bits the expected bits for each digit
   * @return index of the first wrong element, or -1 if all are right
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
