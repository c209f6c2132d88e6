// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

/**
 * The type of a tensor's elements. Every dtype of safetensors has a constant. Tensors of every
 * dtype can be moved. {@link #canCast} and {@link #canReduce} tell whether a dtype can also be cast
 * and reduced.
 */
public enum DType {
  /** A Boolean value in one byte, 0 or 1. */
  BOOL(0, 8, "BOOL"),
  /** Unsigned integer of 8 bits. */
  U8(1, 8, "U8"),
  /** Signed integer of 8 bits. */
  I8(2, 8, "I8"),
  /** 5 bits of exponent, 2 of mantissa, with infinities. */
  F8E5M2(3, 8, "F8_E5M2"),
  /** 4 bits of exponent, 3 of mantissa. No infinities: larger values become the maximum, 448. */
  F8E4M3(4, 8, "F8_E4M3"),
  /** A power of two, used for block scales. */
  F8E8M0(5, 8, "F8_E8M0"),
  /** Signed integer of 16 bits. */
  I16(6, 16, "I16"),
  /** Unsigned integer of 16 bits. */
  U16(7, 16, "U16"),
  /** IEEE 754 binary16. */
  F16(8, 16, "F16"),
  /** The upper half of an F32. */
  BF16(9, 16, "BF16"),
  /** Signed integer of 32 bits. */
  I32(10, 32, "I32"),
  /** Unsigned integer of 32 bits. */
  U32(11, 32, "U32"),
  /** IEEE 754 binary32. */
  F32(12, 32, "F32"),
  /** IEEE 754 binary64. */
  F64(13, 64, "F64"),
  /** Signed integer of 64 bits. */
  I64(14, 64, "I64"),
  /** Unsigned integer of 64 bits. */
  U64(15, 64, "U64"),
  /** A complex number of two f32. */
  C64(16, 64, "C64"),
  /** 4 bits: 2 of exponent, 1 of mantissa. */
  F4(-1, 4, "F4"),
  /** 6 bits: 2 of exponent, 3 of mantissa. */
  F6E2M3(-1, 6, "F6_E2M3"),
  /** 6 bits: 3 of exponent, 2 of mantissa. */
  F6E3M2(-1, 6, "F6_E3M2"),
  /** F8E4M3 with another bias, maximum 240, without a negative zero. Can be moved, not cast. */
  F8E4M3FNUZ(17, 8, "F8_E4M3FNUZ"),
  /** F8E5M2 with another bias, no infinities and no negative zero. Can be moved, not cast. */
  F8E5M2FNUZ(18, 8, "F8_E5M2FNUZ");

  private final int code;
  private final int bits;
  private final String safetensorsName;

  DType(int code, int bits, String safetensorsName) {
    this.code = code;
    this.bits = bits;
    this.safetensorsName = safetensorsName;
  }

  /** Returns the number of bits of one element. */
  public int bits() {
    return bits;
  }

  /**
   * Returns the number of bytes of one element.
   *
   * @throws UnsupportedException for a dtype smaller than a byte
   */
  public int bytes() {
    if (bits < 8) {
      throw new UnsupportedException(
          this + " has " + bits + " bits an element; ask for bytesOf(count) instead");
    }
    return bits / 8;
  }

  /**
   * Returns the number of bytes of {@code count} packed elements.
   *
   * @throws InvalidArgumentException if {@code count} is negative, the elements fill no whole
   *     number of bytes, or the result exceeds the range of a long
   */
  public long bytesOf(long count) {
    if (count < 0) {
      throw new InvalidArgumentException("a negative count of " + this + ": " + count);
    }
    if (bits >= 8) {
      int bytes = bits / 8;
      if (count > Long.MAX_VALUE / bytes) {
        throw new InvalidArgumentException(count + " elements of " + this + " overflow 64 bits");
      }
      return count * bytes;
    }
    long whole = count / 8;
    long rest = count % 8;
    if (rest * bits % 8 != 0) {
      throw new InvalidArgumentException(
          count + " elements of " + this + " do not fill a whole number of bytes");
    }
    return whole * bits + rest * bits / 8;
  }

  /** Returns the dtype's number in the C ABI; -1 for a dtype smaller than a byte. */
  public int code() {
    return code;
  }

  /** Returns true if elements are real floating-point numbers of any width. */
  public boolean isFloating() {
    return switch (this) {
      case F64, F32, F16, BF16, F8E5M2, F8E4M3, F8E8M0, F8E4M3FNUZ, F8E5M2FNUZ, F6E2M3,
          F6E3M2, F4 -> true;
      default -> false;
    };
  }

  /** Returns true if elements are integers. False for bool. */
  public boolean isInteger() {
    return switch (this) {
      case U8, I8, I16, U16, I32, U32, I64, U64 -> true;
      default -> false;
    };
  }

  /**
   * Returns true if elements of this dtype can be cast to {@code to} in one correctly rounded step.
   * True if {@code to} is this dtype.
   */
  public boolean canCast(DType to) {
    Objects.requireNonNull(to, "to");
    return this == to || (isArithmetic() && to.isArithmetic());
  }

  /** Returns true if values of several ranks can be reduced by {@code op}. */
  public boolean canReduce(ReduceOp op) {
    Objects.requireNonNull(op, "op");
    if (isArithmetic()) {
      return !op.isBitwise();
    }
    if (isInteger()) {
      return op != ReduceOp.AVG;
    }
    return this == BOOL && (op == ReduceOp.MIN || op == ReduceOp.MAX);
  }

  private boolean isArithmetic() {
    return switch (this) {
      case F64, F32, F16, BF16, F8E5M2, F8E4M3 -> true;
      default -> false;
    };
  }

  /** Returns the name in a safetensors header, such as {@code BF16} or {@code F8_E4M3}. */
  public String safetensorsName() {
    return safetensorsName;
  }

  /**
   * Returns the dtype with a name as {@link #toString} or {@link #safetensorsName} returns it, such
   * as {@code f8e4m3} or {@code F8_E4M3}.
   *
   * @throws InvalidArgumentException if there is no such dtype
   */
  public static DType parse(String name) {
    Objects.requireNonNull(name, "name");
    for (DType dtype : values()) {
      if (dtype.safetensorsName.equals(name) || dtype.toString().equals(name)) {
        return dtype;
      }
    }
    throw new InvalidArgumentException(
        "'" + name + "' is no dtype; known: "
            + Arrays.stream(values()).map(DType::toString).collect(Collectors.joining(" ")));
  }

  /** Returns the short name, such as {@code bf16} or {@code f8e4m3}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
