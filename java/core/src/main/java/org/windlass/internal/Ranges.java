// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;
import java.util.StringJoiner;

/** Formats lists of numbers. */
public final class Ranges {
  private Ranges() {}

  /** Returns the numbers in order, with consecutive ones as ranges such as {@code 4-7}. */
  public static String text(List<Integer> numbers, String separator) {
    StringJoiner text = new StringJoiner(separator);
    int next;
    for (int i = 0; i < numbers.size(); i = next) {
      next = i + 1;
      while (next < numbers.size() && numbers.get(next) == numbers.get(next - 1) + 1) {
        next++;
      }
      text.add(numbers.get(i) + (next == i + 1 ? "" : "-" + numbers.get(next - 1)));
    }
    return text.toString();
  }
}
