// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.Map;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.store.Texts;

/**
 * A process's settings for its host.
 *
 * @param name name of the host; empty if machine and pid namespace define the host
 * @param silenceNs silence after which another host is lost; 0 for no limit
 */
public record Host(String name, long silenceNs) {
  public static final String NAME_VARIABLE = "WINDLASS_HOST";

  public static final String SILENCE_VARIABLE = "WINDLASS_HOST_SILENCE";

  /** Matches a name that the native library can store. */
  private static final Pattern NAME = Pattern.compile("[!-~]{1,63}");

  private static final Pattern SECONDS = Pattern.compile("[0-9]{1,4}(\\.[0-9]{1,3})?");
  private static final double LEAST_SILENCE = 0.5;

  /**
   * Reads the settings from environment variables.
   *
   * @throws org.windlass.error.InvalidArgumentException if one is malformed
   */
  public static Host of(Map<String, String> variables) {
    String name = variables.getOrDefault(NAME_VARIABLE, "");
    if (!name.isEmpty() && !NAME.matcher(name).matches()) {
      throw new InvalidArgumentException(
          NAME_VARIABLE + " is '" + Texts.printable(name)
              + "'; a host's name has 1 to 63 characters of ASCII, none of them a space");
    }
    String given = variables.getOrDefault(SILENCE_VARIABLE, "");
    String silence = given.isEmpty() ? "2" : given;
    double seconds = SECONDS.matcher(silence).matches() ? Double.parseDouble(silence) : -1;
    if (seconds != 0 && seconds < LEAST_SILENCE) {
      throw new InvalidArgumentException(
          SILENCE_VARIABLE + " is '" + Texts.printable(silence) + "'; it is a number of seconds, "
              + LEAST_SILENCE + " to 9999.999, or 0 for no limit");
    }
    return new Host(name, Math.round(seconds * 1e9));
  }
}
