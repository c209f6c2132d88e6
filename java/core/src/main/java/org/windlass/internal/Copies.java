// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Copies collections that callers pass and Windlass keeps. The copies are unmodifiable. A null
 * element throws a NullPointerException that names the argument and the element's position.
 */
public final class Copies {
  private Copies() {}

  public static <T> List<T> list(Collection<? extends T> values, String name) {
    Objects.requireNonNull(values, name);
    int i = 0;
    for (T value : values) {
      if (value == null) {
        throw new NullPointerException(name + "[" + i + "]");
      }
      i++;
    }
    return List.copyOf(values);
  }

  /**
   * Returns an unmodifiable copy in the order of the original.
   *
   * @param name the argument, for the exception
   */
  public static <K, V> Map<K, V> map(Map<? extends K, ? extends V> values, String name) {
    Map<K, V> copy = new LinkedHashMap<>(Objects.requireNonNull(values, name));
    copy.forEach(
        (key, value) -> {
          if (key == null) {
            throw new NullPointerException(name + " has the key null");
          }
          if (value == null) {
            throw new NullPointerException(name + "[" + key + "]");
          }
        });
    return Collections.unmodifiableMap(copy);
  }
}
