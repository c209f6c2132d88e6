// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.Arrays;
import org.windlass.error.InvalidArgumentException;

/** Parses shapes of the command line, such as {@code 4096x4096}. An empty text is a scalar. */
public final class Shape {
  private Shape() {}

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
