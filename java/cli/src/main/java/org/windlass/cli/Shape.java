// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.Arrays;
import org.windlass.error.InvalidArgumentException;

/** Shapes as the command line writes them: {@code 4096x4096}, and nothing for a scalar. */
public final class Shape {
  private Shape() {}

  /** The extents that {@code text} names. */
  public static long[] parse(String text) {
    if (text.isEmpty()) {
      return new long[0];
    }
    try {
      long[] shape = Arrays.stream(text.split("x", -1)).mapToLong(Long::parseLong).toArray();
      if (Arrays.stream(shape).allMatch(extent -> extent >= 0)) {
        return shape;
      }
    } catch (NumberFormatException e) {
      // Falls through: not a shape.
    }
    throw new InvalidArgumentException(
        "--shape: '" + text + "' is not like 4096x4096, or empty for a scalar");
  }
}
