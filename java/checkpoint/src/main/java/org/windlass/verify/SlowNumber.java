// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.Set;
import org.windlass.DType;
import org.windlass.ReduceOp;

/**
 * Computes casts and reductions from their definitions, one element at a time, on exact doubles.
 * Shares no code with the kernels, which it checks.
 */
final class SlowNumber {
  /**
   * Describes a binary floating-point format. If {@code finite}, it has no infinity, and too large
   * values become the largest finite one.
   */
  private record Format(int exponentBits, int mantissaBits, boolean finite, long quietNan) {
    int bias() {
      return (1 << (exponentBits - 1)) - 1;
    }

    long infinity() {
      return ((1L << exponentBits) - 1) << mantissaBits;
    }

    long largest() {
      return finite ? quietNan - 1 : infinity() - 1;
    }
  }

  private static final Set<DType> SIGNED = Set.of(DType.I8, DType.I16, DType.I32, DType.I64);

  private SlowNumber() {}

  private static Format format(DType dtype) {
    return switch (dtype) {
      case F64 -> new Format(11, 52, false, 0x7ff8000000000000L);
      case F32 -> new Format(8, 23, false, 0x7fc00000L);
      case BF16 -> new Format(8, 7, false, 0x7fc0L);
      case F16 -> new Format(5, 10, false, 0x7e00L);
      case F8E5M2 -> new Format(5, 2, false, 0x7eL);
      case F8E4M3 -> new Format(4, 3, true, 0x7fL);
      default -> throw new IllegalArgumentException(dtype + " is no arithmetic format");
    };
  }

  static boolean isNan(DType dtype, long bits) {
    return Double.isNaN(decode(dtype, bits));
  }

  /** Returns the exact number that the bits represent in a dtype. */
  static double decode(DType dtype, long bits) {
    if (dtype == DType.F64) {
      return Double.longBitsToDouble(bits);
    }
    Format format = format(dtype);
    long mantissa = bits & ((1L << format.mantissaBits) - 1);
    int exponent = (int) (bits >>> format.mantissaBits) & ((1 << format.exponentBits) - 1);
    double sign = (bits >>> (format.exponentBits + format.mantissaBits) & 1) == 0 ? 1 : -1;
    if (format.finite) {
      if ((bits & 0x7f) == format.quietNan) {
        return Double.NaN;
      }
    } else if (exponent == (1 << format.exponentBits) - 1) {
      return mantissa == 0 ? sign * Double.POSITIVE_INFINITY : Double.NaN;
    }
    if (exponent == 0) {
      return sign * Math.scalb((double) mantissa, 1 - format.bias() - format.mantissaBits);
    }
    return sign
        * Math.scalb(
            (double) (mantissa | 1L << format.mantissaBits),
            exponent - format.bias() - format.mantissaBits);
  }

  /** Returns the bits in a dtype of the number nearest to {@code number}. Ties go to even. */
  static long encode(DType dtype, double number) {
    Format format = format(dtype);
    if (Double.isNaN(number)) {
      return format.quietNan;
    }
    if (dtype == DType.F64) {
      return Double.doubleToRawLongBits(number);
    }
    long sign =
        Double.doubleToRawLongBits(number) < 0
            ? 1L << (format.exponentBits + format.mantissaBits)
            : 0;
    double magnitude = Math.abs(number);
    long overflow = format.finite ? format.largest() : format.infinity();
    if (Double.isInfinite(magnitude)) {
      return sign | overflow;
    }
    int exponent = Math.max(Math.getExponent(magnitude), 1 - format.bias());
    long mantissa = (long) Math.rint(Math.scalb(magnitude, format.mantissaBits - exponent));
    // The leading bit of a normal number's mantissa adds one to the exponent field, and so does a
    // carry.
    long bits = ((long) (exponent + format.bias() - 1) << format.mantissaBits) + mantissa;
    return sign | (bits > format.largest() ? overflow : bits);
  }

  /** Casts with one rounding. If the dtypes are the same, no bit changes. */
  static long cast(DType from, DType to, long bits) {
    return from == to ? bits : encode(to, decode(from, bits));
  }

  /** Reduces the terms in order, and rounds once to their dtype. One term stays unchanged. */
  static long fold(DType dtype, ReduceOp op, long[] terms) {
    if (terms.length == 1) {
      return terms[0];
    }
    if (dtype == DType.BOOL || dtype.isInteger()) {
      return foldIntegers(dtype, op, terms);
    }
    boolean wide = dtype == DType.F64;
    double sum = decode(dtype, terms[0]);
    for (int i = 1; i < terms.length; i++) {
      double next = combine(op, sum, decode(dtype, terms[i]));
      // A sum or product of two f32 has so few bits that rounding the double equals rounding the
      // result.
      sum = wide ? next : (float) next;
    }
    if (op == ReduceOp.AVG) {
      sum = wide ? sum / terms.length : (float) (sum / terms.length);
    }
    return encode(dtype, sum);
  }

  private static double combine(ReduceOp op, double a, double b) {
    return switch (op) {
      case SUM, AVG -> a + b;
      case PRODUCT -> a * b;
      case MAX -> Math.max(a, b);
      case MIN -> Math.min(a, b);
      case AND, OR, XOR -> throw new IllegalArgumentException("floats have no " + op);
    };
  }

  /** Reduces in arithmetic of 64 bits, whose low bits are those of any shorter arithmetic. */
  private static long foldIntegers(DType dtype, ReduceOp op, long[] terms) {
    int unused = Long.SIZE - dtype.bits();
    // With the sign bit inverted, signed integers compare as unsigned ones do.
    long sign = SIGNED.contains(dtype) ? Long.MIN_VALUE : 0;
    long result = terms[0];
    for (int i = 1; i < terms.length; i++) {
      long term = terms[i];
      boolean less = Long.compareUnsigned(term << unused ^ sign, result << unused ^ sign) < 0;
      result =
          switch (op) {
            case SUM -> result + term;
            case PRODUCT -> result * term;
            case MIN -> less ? term : result;
            case MAX -> less ? result : term;
            case AND -> result & term;
            case OR -> result | term;
            case XOR -> result ^ term;
            case AVG -> throw new IllegalArgumentException("integers have no avg");
          };
    }
    return result << unused >>> unused;
  }
}
