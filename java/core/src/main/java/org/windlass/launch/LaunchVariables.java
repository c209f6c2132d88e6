// SPDX-License-Identifier: Apache-2.0
package org.windlass.launch;

import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.store.Texts;

/** Environment variables of a launcher. Error messages name the variables and show their values. */
record LaunchVariables(Map<String, String> all) {
  /** Returns true if the variable has a non-empty value; false if {@code name} is null. */
  boolean isSet(@Nullable String name) {
    return name != null && value(name).isPresent();
  }

  String get(String name) {
    return Objects.requireNonNull(all.get(name));
  }

  Optional<String> value(String name) {
    return Optional.ofNullable(all.get(name)).filter(value -> !value.isEmpty());
  }

  String quoted(String name) {
    return name + " is '" + Texts.printable(get(name)) + "'";
  }

  String quoted(String one, String other) {
    return quoted(one) + ", and " + quoted(other);
  }

  /** Throws unless both variables are set, or neither is. The message ends with {@code cure}. */
  void requireBoth(String one, String other, String cure) {
    if (isSet(one) != isSet(other)) {
      String set = isSet(one) ? one : other;
      String missing = isSet(one) ? other : one;
      throw new InvalidArgumentException(
          quoted(set) + ", and " + missing + " is not set; " + cure);
    }
  }

  /**
   * Parses the variable as a number. Throws unless it is {@code least} to {@code most}, inclusive.
   */
  int number(String name, int least, int most) {
    long value = get(name).matches("[0-9]{1,18}") ? Long.parseLong(get(name)) : -1;
    if (value < least || value > most) {
      throw new InvalidArgumentException(
          quoted(name) + "; it must be a number from " + least + " to " + most
              + "; correct what sets it");
    }
    return (int) value;
  }

  int count(String name) {
    return number(name, 1, Native.WL_MAX_RANKS);
  }

  /**
   * Parses a variable as a rank. Throws unless it is less than the number in the variable {@code
   * counter}.
   */
  int rank(String name, String counter) {
    int value = number(name, 0, Native.WL_MAX_RANKS - 1);
    if (value >= count(counter)) {
      throw new InvalidArgumentException(
          quoted(name, counter)
              + "; a rank must be less than the number of ranks; correct the variables");
    }
    return value;
  }
}
