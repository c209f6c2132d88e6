// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import org.windlass.DType;
import org.windlass.ReduceOp;

/**
 * Casts and reductions of one element, by definition rather than by bit tricks: narrow floats are
 * rounded by looking for their neighbours. Elements are bits in the low end of a long.
 */
public final class ScalarReference {
  private ScalarReference() {}

  private record Format(int bits, int mantissa, int bias, long maxFinite, long overflow, long nan) {
    long sign() {
      return 1L << (bits - 1);
    }

    /** The value of a finite code without its sign bit. */
    double magnitude(long code) {
      long exponent = code >> mantissa;
      double fraction = (double) (code & ((1L << mantissa) - 1)) / (1L << mantissa);
      return exponent == 0
          ? Math.scalb(fraction, 1 - bias)
          : Math.scalb(1 + fraction, (int) exponent - bias);
    }
  }

  private static Format format(DType dtype) {
    return switch (dtype) {
      case F16 -> new Format(16, 10, 15, 0x7bff, 0x7c00, 0x7e00);
      case BF16 -> new Format(16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0);
      case F8E5M2 -> new Format(8, 2, 15, 0x7b, 0x7c, 0x7e);
      case F8E4M3 -> new Format(8, 3, 7, 0x7e, 0x7e, 0x7f);
      default -> throw new IllegalArgumentException(dtype.toString());
    };
  }

  public static double decode(DType dtype, long bits) {
    if (dtype == DType.F64) {
      return Double.longBitsToDouble(bits);
    }
    if (dtype == DType.F32) {
      return Float.intBitsToFloat((int) bits);
    }
    Format f = format(dtype);
    long code = bits & (f.sign() - 1);
    double sign = (bits & f.sign()) != 0 ? -1 : 1;
    if (code <= f.maxFinite) {
      return sign * f.magnitude(code);
    }
    boolean infinite = f.overflow != f.maxFinite && code == f.overflow;
    return infinite ? sign * Double.POSITIVE_INFINITY : Double.NaN;
  }

  /** The nearest element, ties to even; NaN is the canonical one. */
  public static long encode(DType dtype, double value) {
    if (dtype == DType.F64) {
      return Double.doubleToLongBits(value);
    }
    if (dtype == DType.F32) {
      return Float.floatToIntBits((float) value) & 0xffffffffL;
    }
    Format f = format(dtype);
    if (Double.isNaN(value)) {
      return f.nan;
    }
    double magnitude = Math.abs(value);
    long low = 0;
    long high = f.maxFinite;
    while (low < high) {
      long middle = (low + high + 1) >>> 1;
      if (f.magnitude(middle) <= magnitude) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    double below = magnitude - f.magnitude(low);
    double above = f.magnitude(low + 1) - magnitude; // past the end: where the next number would be
    long code = below < above || (below == above && (low & 1) == 0) ? low : low + 1;
    if (code > f.maxFinite) {
      code = f.overflow;
    }
    boolean negative = Double.doubleToRawLongBits(value) < 0;
    return negative ? code | f.sign() : code;
  }

  public static long cast(DType from, DType to, long bits) {
    return from == to ? bits : encode(to, decode(from, bits));
  }

  /** The left fold of {@code terms}, in the canonical accumulator, rounded once. */
  public static long fold(DType dtype, ReduceOp op, long[] terms) {
    if (terms.length == 1) {
      return terms[0];
    }
    if (dtype == DType.F64) {
      return foldDoubles(op, terms);
    }
    if (dtype.isFloating()) {
      return foldFloats(dtype, op, terms);
    }
    int unused = 64 - dtype.bits();
    long total = extend(dtype, terms[0]);
    for (int i = 1; i < terms.length; i++) {
      long term = extend(dtype, terms[i]);
      boolean less = dtype == DType.U64 ? Long.compareUnsigned(term, total) < 0 : term < total;
      total =
          switch (op) {
            case SUM -> total + term;
            case PRODUCT -> total * term;
            case MIN -> less ? term : total;
            case MAX -> less ? total : term;
            case AND -> total & term;
            case OR -> total | term;
            case XOR -> total ^ term;
            case AVG -> throw new IllegalArgumentException("avg of integers");
          };
      total = extend(dtype, total);
    }
    return total << unused >>> unused;
  }

  private static long extend(DType dtype, long bits) {
    int unused = 64 - dtype.bits();
    boolean signed =
        dtype == DType.I8 || dtype == DType.I16 || dtype == DType.I32 || dtype == DType.I64;
    return signed ? bits << unused >> unused : bits << unused >>> unused;
  }

  private static long foldDoubles(ReduceOp op, long[] terms) {
    double total = Double.longBitsToDouble(terms[0]);
    for (int i = 1; i < terms.length; i++) {
      double term = Double.longBitsToDouble(terms[i]);
      total =
          switch (op) {
            case SUM, AVG -> total + term;
            case PRODUCT -> total * term;
            case MIN -> Math.min(total, term);
            case MAX -> Math.max(total, term);
            case AND, OR, XOR -> throw new IllegalArgumentException(op + " of floats");
          };
    }
    return encode(DType.F64, op == ReduceOp.AVG ? total / terms.length : total);
  }

  private static long foldFloats(DType dtype, ReduceOp op, long[] terms) {
    float total = (float) decode(dtype, terms[0]);
    for (int i = 1; i < terms.length; i++) {
      float term = (float) decode(dtype, terms[i]);
      total =
          switch (op) {
            case SUM, AVG -> total + term;
            case PRODUCT -> total * term;
            case MIN -> Math.min(total, term);
            case MAX -> Math.max(total, term);
            case AND, OR, XOR -> throw new IllegalArgumentException(op + " of floats");
          };
    }
    return encode(dtype, op == ReduceOp.AVG ? total / terms.length : total);
  }
}
