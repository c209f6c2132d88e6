// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;
import java.util.stream.Collectors;
import org.windlass.error.InvalidArgumentException;

/** Finds constants by the names that {@code toString} returns. */
public final class Named {
  private Named() {}

  /**
   * Returns the constant of a name.
   *
   * @param refusal the message if there is none, which continues with the names of all constants
   */
  public static <E extends Enum<E>> E of(String name, List<E> constants, String refusal) {
    for (E each : constants) {
      if (each.toString().equals(name)) {
        return each;
      }
    }
    throw new InvalidArgumentException(
        refusal + constants.stream().map(E::toString).collect(Collectors.joining(", ")));
  }
}
