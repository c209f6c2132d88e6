// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.util.List;
import java.util.Locale;
import org.windlass.error.InvalidArgumentException;

/**
 * Parses and formats sizes in the form that users write, such as 4, 64K, 1M or 2G. The units are
 * powers of 1,024.
 */
public final class ByteSize {
  private static final List<String> UNITS = List.of("B", "kB", "MB", "GB", "TB", "PB", "EB");

  private ByteSize() {}

  /** Parses the value of an option, a size of at least 1, and returns it in bytes. */
  public static long parse(String option, String text) {
    String last = text.substring(Math.max(0, text.length() - 1)).toUpperCase(Locale.ROOT);
    int unit = last.isEmpty() ? 0 : "KMG".indexOf(last) + 1;
    int shift = 10 * unit;
    int digits = text.length() - (unit > 0 ? 1 : 0);
    try {
      long count = Long.parseLong(text.substring(0, digits));
      if (count > 0 && count <= Long.MAX_VALUE >> shift) {
        return count << shift;
      }
    } catch (NumberFormatException e) {
      // Falls through: not a number.
    }
    throw new InvalidArgumentException(
        option + ": '" + text + "' is no size; write a number from 1 on, or one with K, M or G");
  }

  /** Returns a size for people, rounded to three digits: {@code 1.23 GB} is 1.23e9 bytes. */
  public static String rounded(long bytes) {
    double size = bytes;
    int unit = 0;
    for (; size >= 999.5 && unit < UNITS.size() - 1; unit++) {
      size /= 1000;
    }
    int places = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    return String.format(Locale.ROOT, "%." + places + "f %s", size, UNITS.get(unit));
  }

  /** Returns the shortest text that {@link #parse} reads as this number of bytes. */
  public static String format(long bytes) {
    for (int unit = 3; unit > 0; unit--) {
      if (bytes != 0 && bytes % (1L << 10 * unit) == 0) {
        return (bytes >> 10 * unit) + "KMG".substring(unit - 1, unit);
      }
    }
    return Long.toString(bytes);
  }
}
