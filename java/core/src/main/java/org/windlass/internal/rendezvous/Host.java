// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.util.Map;
import java.util.regex.Pattern;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Texts;

/**
 * What a process's settings say of the host that it is of.
 *
 * @param name of that host, which tells it from others whatever machine it is; empty where machine
 *     and pid namespace are what does
 * @param silenceNs after which a host of which nothing comes counts as lost; 0: it may be silent
 */
public record Host(String name, long silenceNs) {
  /** The environment variable that has the name. */
  public static final String NAME_VARIABLE = "WINDLASS_HOST";

  /** The environment variable that says how long a host may be silent, in seconds. */
  public static final String SILENCE_VARIABLE = "WINDLASS_HOST_SILENCE";

  /** As the native library keeps it. */
  private static final Pattern NAME = Pattern.compile("[!-~]{1,63}");

  private static final Pattern SECONDS = Pattern.compile("[0-9]{1,4}(\\.[0-9]{1,3})?");
  private static final String DEFAULT_SILENCE = "2";
  private static final double LEAST_SILENCE = 0.5;

  /** What the environment says; InvalidArgument for what is no name, or no number of seconds. */
  public static Host of(Map<String, String> variables, FailureMaker failures) {
    String name = variables.getOrDefault(NAME_VARIABLE, "");
    if (!name.isEmpty() && !NAME.matcher(name).matches()) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          NAME_VARIABLE + " is '" + Texts.printable(name)
              + "'; a host's name has 1 to 63 characters of ASCII, none of them a space");
    }
    String given = variables.getOrDefault(SILENCE_VARIABLE, "");
    String silence = given.isEmpty() ? DEFAULT_SILENCE : given;
    double seconds = SECONDS.matcher(silence).matches() ? Double.parseDouble(silence) : -1;
    if (seconds != 0 && seconds < LEAST_SILENCE) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          SILENCE_VARIABLE + " is '" + Texts.printable(silence) + "'; it is a number of seconds, "
              + LEAST_SILENCE + " to 9999.999, or 0, which lets a host be silent");
    }
    return new Host(name, Math.round(seconds * 1e9));
  }
}
