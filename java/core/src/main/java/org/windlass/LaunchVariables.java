// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Map;
import org.windlass.internal.store.Texts;

/** Environment variables of a launcher, asked for by name; what is refused is named and shown. */
record LaunchVariables(Map<String, String> all) {
  /** Whether it has a value; a launcher that sets no such variable has null for its name. */
  boolean isSet(String name) {
    return name != null && !all.getOrDefault(name, "").isEmpty();
  }

  String get(String name) {
    return all.get(name);
  }

  /** Such as {@code RANK is '3'}. */
  String quoted(String name) {
    return name + " is '" + Texts.printable(get(name)) + "'";
  }

  /** Such as {@code RANK is '3', and WORLD_SIZE is '2'}. */
  String quoted(String one, String other) {
    return quoted(one) + ", and " + quoted(other);
  }

  /**
   * Refuses one without the other.
   *
   * @param cure what to do about it
   */
  void requireBoth(String one, String other, String cure) {
    if (isSet(one) != isSet(other)) {
      String set = isSet(one) ? one : other;
      String missing = isSet(one) ? other : one;
      throw new InvalidArgumentException(
          quoted(set) + ", and " + missing + " is not set; " + cure);
    }
  }

  /** The variable's value as a number from {@code least} to {@code most}. */
  int number(String name, int least, int most) {
    return number(quoted(name) + "; it", get(name), least, most);
  }

  /**
   * Digits as a number from {@code least} to {@code most}.
   *
   * @param what begins what is said of others
   */
  static int number(String what, String digits, int least, int most) {
    long value = digits.matches("[0-9]{1,18}") ? Long.parseLong(digits) : -1;
    if (value < least || value > most) {
      throw new InvalidArgumentException(
          what + " must be a number from " + least + " to " + most + "; correct what sets it");
    }
    return (int) value;
  }
}
