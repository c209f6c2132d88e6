// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Locale;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The operations by which the values of several ranks become one. Numbers are those of the C ABI's
 * {@code wl_reduce_op}.
 */
public enum ReduceOp {
  /** Adds; integers wrap. */
  SUM(0),
  /** The largest; a NaN wins. */
  MAX(1),
  /** The smallest; a NaN wins. */
  MIN(2),
  /** Multiplies; integers wrap. */
  PRODUCT(3),
  /** The sum divided by the number of ranks; floating dtypes only. */
  AVG(4);

  private final int code;

  ReduceOp(int code) {
    this.code = code;
  }

  /** The operation's number in the C ABI. */
  public int code() {
    return code;
  }

  /** The operation of a name as in layout strings: {@code sum avg max min product}. */
  public static ReduceOp parse(String name) {
    Objects.requireNonNull(name, "name");
    for (ReduceOp op : values()) {
      if (op.toString().equals(name)) {
        return op;
      }
    }
    throw new InvalidArgumentException(
        "'" + name + "' is no reduce operation; known: sum avg max min product");
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
