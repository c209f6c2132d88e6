// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Locale;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The operations that combine the values of several ranks into one. The numbers are those of the C
 * ABI's {@code wl_reduce_op}.
 */
public enum ReduceOp {
  /** Adds; integers wrap. */
  SUM(0),
  /** Takes the largest value. If any is NaN, the result is NaN. */
  MAX(1),
  /** Takes the smallest value. If any is NaN, the result is NaN. */
  MIN(2),
  /** Multiplies; integers wrap. */
  PRODUCT(3),
  /** Divides the sum by the number of ranks. Floating dtypes only. */
  AVG(4),
  /** Combines bits by "and". Integer dtypes only, without bool, whose minimum is the same. */
  AND(5),
  /** Combines bits by "or". Integer dtypes only, without bool, whose maximum is the same. */
  OR(6),
  /** Combines bits by "exclusive or". Integer dtypes only, without bool. */
  XOR(7);

  private final int code;

  ReduceOp(int code) {
    this.code = code;
  }

  /** Returns the operation's number in the C ABI. */
  public int code() {
    return code;
  }

  /** Returns true for {@link #AND}, {@link #OR} and {@link #XOR}. */
  public boolean isBitwise() {
    return this == AND || this == OR || this == XOR;
  }

  /**
   * Returns the operation with a name as in layout strings: {@code sum}, {@code avg}, {@code max},
   * {@code min}, {@code product}, {@code and}, {@code or} or {@code xor}.
   *
   * @throws InvalidArgumentException if there is no such operation
   */
  public static ReduceOp parse(String name) {
    Objects.requireNonNull(name, "name");
    for (ReduceOp op : values()) {
      if (op.toString().equals(name)) {
        return op;
      }
    }
    throw new InvalidArgumentException(
        "'" + name + "' is not a reduce operation; the operations are: sum avg max min product"
            + " and or xor");
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
