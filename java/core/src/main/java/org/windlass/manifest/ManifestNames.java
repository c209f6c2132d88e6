// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.IntFunction;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

final class ManifestNames {
  private ManifestNames() {}

  static void require(String what, String name) {
    Objects.requireNonNull(name, what);
    if (name.isEmpty()) {
      throw new InvalidArgumentException(what + " is empty");
    }
    if (!JsonText.wellFormed(name)) {
      throw new InvalidArgumentException(what + " contains an unpaired surrogate");
    }
  }

  static String quoted(String name) {
    return JsonText.quoted(name);
  }

  /** Throws if a value occurs twice, except none. {@code place} formats an index for messages. */
  static void requireDistinct(List<?> values, IntFunction<String> place) {
    Map<Object, Integer> places = new HashMap<>();
    for (int i = 0; i < values.size(); i++) {
      Object value = values.get(i) instanceof Optional<?> name ? name.orElse(null) : values.get(i);
      Integer first = value == null ? null : places.putIfAbsent(value, i);
      if (first != null) {
        throw new InvalidArgumentException(
            place.apply(i) + " is " + (value instanceof String name ? quoted(name) : value)
                + ", as " + place.apply(first) + " is");
      }
    }
  }
}
