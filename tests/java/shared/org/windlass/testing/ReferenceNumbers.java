// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import org.windlass.DType;
import org.windlass.ReduceOp;

/**
 * Casts and reductions for tests. A cast to 8 or 16 bits looks the number up among all that the dtype has; wider ones are
 * Java's own.
 */
public final class ReferenceNumbers {
  private record Entry(double value, long bits) {}

  private static final Map<DType, Entry[]> TABLES = new EnumMap<>(DType.class);

  private ReferenceNumbers() {}

  public static double decode(DType dtype, long bits) {
    return switch (dtype) {
      case F64 -> Double.longBitsToDouble(bits);
      case F32 -> Float.intBitsToFloat((int) bits);
      case BF16 -> Float.intBitsToFloat((int) (bits << 16));
      case F16 -> decode((int) bits, 5, 10, false);
      case F8E5M2 -> decode((int) bits, 5, 2, false);
      case F8E4M3 -> decode((int) bits, 4, 3, true);
      default -> throw new AssertionError(dtype);
    };
  }

  private static double decode(int bits, int exponentBits, int mantissaBits, boolean finite) {
    int sign = bits >> (exponentBits + mantissaBits) & 1;
    int exponent = bits >> mantissaBits & (1 << exponentBits) - 1;
    int mantissa = bits & (1 << mantissaBits) - 1;
    int bias = (1 << exponentBits - 1) - 1;
    int most = (1 << exponentBits) - 1;
    double value;
    if (finite ? exponent == most && mantissa == (1 << mantissaBits) - 1 : exponent == most) {
      value = mantissa == 0 && !finite ? Double.POSITIVE_INFINITY : Double.NaN;
    } else if (exponent == 0) {
      value = mantissa / Math.pow(2, mantissaBits) * Math.pow(2, 1 - bias);
    } else {
      value = (1 + mantissa / Math.pow(2, mantissaBits)) * Math.pow(2, exponent - bias);
    }
    return sign == 0 ? value : -value;
  }

  /** All finite numbers from +0 up. */
  private static Entry[] table(DType dtype) {
    return TABLES.computeIfAbsent(
        dtype,
        key -> {
          Entry[] all = new Entry[1 << key.bits() - 1];
          int count = 0;
          for (int bits = 0; bits < all.length; bits++) {
            double value = decode(key, bits);
            if (Double.isFinite(value)) {
              all[count++] = new Entry(value, bits);
            }
          }
          return Arrays.copyOf(all, count);
        });
  }

  public static long cast(DType from, DType to, long bits) {
    return from == to ? bits : encode(to, decode(from, bits));
  }

  public static long encode(DType to, double value) {
    if (Double.isNaN(value)) {
      return switch (to) {
        case F64 -> 0x7ff8000000000000L;
        case F32 -> 0x7fc00000L;
        case BF16 -> 0x7fc0L;
        case F16 -> 0x7e00L;
        case F8E5M2 -> 0x7eL;
        case F8E4M3 -> 0x7fL;
        default -> throw new AssertionError(to);
      };
    }
    if (to == DType.F64) {
      return Double.doubleToRawLongBits(value);
    }
    if (to == DType.F32) {
      return Float.floatToRawIntBits((float) value) & 0xffffffffL;
    }
    boolean negative = Double.doubleToRawLongBits(value) < 0;
    return nearest(to, Math.abs(value)) | (negative ? 1L << to.bits() - 1 : 0);
  }

  private static long nearest(DType to, double magnitude) {
    Entry[] table = table(to);
    Entry largest = table[table.length - 1];
    if (magnitude >= largest.value) {
      // Half a step beyond the largest number rounds to it or, where there is one, to infinity.
      double step = largest.value - table[table.length - 2].value;
      boolean over = magnitude >= largest.value + step / 2;
      return over && to != DType.F8E4M3 ? largest.bits + 1 : largest.bits;
    }
    int low = 0;
    int high = table.length - 1;
    while (high - low > 1) {
      int middle = (low + high) / 2;
      if (table[middle].value <= magnitude) {
        low = middle;
      } else {
        high = middle;
      }
    }
    double below = magnitude - table[low].value;
    double above = table[high].value - magnitude;
    boolean up = below > above || below == above && (table[low].bits & 1) == 1;
    return up ? table[high].bits : table[low].bits;
  }

  /** Left to right; f64 in double, other floats in float, then one rounding. */
  public static long reduce(DType dtype, ReduceOp op, long[] terms) {
    if (terms.length == 1) {
      return terms[0];
    }
    if (!dtype.isFloating()) {
      return reduceIntegers(dtype, op, terms);
    }
    if (dtype == DType.F64) {
      double sum = Double.longBitsToDouble(terms[0]);
      for (int i = 1; i < terms.length; i++) {
        double next = Double.longBitsToDouble(terms[i]);
        sum =
            switch (op) {
              case SUM, AVG -> sum + next;
              case PRODUCT -> sum * next;
              case MAX -> Math.max(sum, next);
              case MIN -> Math.min(sum, next);
              case AND, OR, XOR -> throw new AssertionError(op);
            };
      }
      return encode(dtype, op == ReduceOp.AVG ? sum / terms.length : sum);
    }
    float sum = (float) decode(dtype, terms[0]);
    for (int i = 1; i < terms.length; i++) {
      float next = (float) decode(dtype, terms[i]);
      sum =
          switch (op) {
            case SUM, AVG -> sum + next;
            case PRODUCT -> sum * next;
            case MAX -> Math.max(sum, next);
            case MIN -> Math.min(sum, next);
            case AND, OR, XOR -> throw new AssertionError(op);
          };
    }
    return encode(dtype, op == ReduceOp.AVG ? sum / terms.length : sum);
  }

  private static long reduceIntegers(DType dtype, ReduceOp op, long[] terms) {
    java.math.BigInteger result = null;
    for (long term : terms) {
      java.math.BigInteger next = integer(dtype, term);
      result =
          result == null
              ? next
              : switch (op) {
                case SUM -> result.add(next);
                case PRODUCT -> result.multiply(next);
                case MAX -> result.max(next);
                case MIN -> result.min(next);
                case AND -> result.and(next);
                case OR -> result.or(next);
                case XOR -> result.xor(next);
                case AVG -> throw new AssertionError(op);
              };
    }
    long mask = dtype.bits() == 64 ? -1 : (1L << dtype.bits()) - 1;
    return result.longValue() & mask;
  }

  private static java.math.BigInteger integer(DType dtype, long bits) {
    boolean signed = dtype.toString().startsWith("i");
    java.math.BigInteger value = java.math.BigInteger.valueOf(bits);
    java.math.BigInteger range = java.math.BigInteger.ONE.shiftLeft(dtype.bits());
    value = value.mod(range);
    return signed && value.testBit(dtype.bits() - 1) ? value.subtract(range) : value;
  }
}
