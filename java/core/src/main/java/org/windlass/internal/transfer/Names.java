// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.store.Texts;

/** Checks names of jobs and links, which are parts of messages and of keys at stores. */
public final class Names {
  private static final Pattern NAME = Pattern.compile("[^\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}/]+");

  private static final int LONGEST = 64;

  private Names() {}

  /**
   * Throws InvalidArgumentException unless a name has 1 to 64 bytes of UTF-8, and only printable
   * characters without a slash.
   *
   * @param what the argument's name, for the message
   */
  public static void require(String what, String name) {
    Objects.requireNonNull(name, what);
    if (!NAME.matcher(name).matches()
        || name.getBytes(StandardCharsets.UTF_8).length > LONGEST) {
      String shown = name.length() <= LONGEST ? name : name.substring(0, LONGEST) + "...";
      throw new InvalidArgumentException(
          what + ": '" + Texts.printable(shown) + "' is not a valid name; a name has 1 to"
              + " " + LONGEST
              + " bytes of printable characters, without a slash");
    }
  }
}
