// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;

/** Parses HOST:PORT in settings, and resolves the host. */
public final class HostAndPort {
  public static final int LAST_PORT = 65_535;

  private static final long RESOLVE_AGAIN_MS = 200;

  /** Form of a host name or an address. An IPv6 address may end with an interface. */
  private static final Pattern HOST =
      Pattern.compile("[A-Za-z0-9._-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?");

  /** An IPv6 address without brackets, and a port. */
  private static final Pattern WITHOUT_BRACKETS =
      Pattern.compile("([0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?):([0-9]+)");

  private static final Pattern ANY = Pattern.compile("[0.]+|[0:]+");

  private static final Pattern TEXT =
      Pattern.compile("(?:\\[(?<literal>[^\\[\\]]+)\\]|(?<name>[^:\\[\\]]+)):(?<port>.*)");

  private HostAndPort() {}

  /**
   * Parses a text such as {@code 127.0.0.1:29500} or {@code [::1]:29500}, without a look-up.
   *
   * @param setting name of the setting, for messages
   * @param or other forms that the setting may have, for messages; may be empty
   * @throws InvalidArgumentException if the text is malformed
   */
  public static InetSocketAddress parse(String setting, String text, String or) {
    Matcher bare = WITHOUT_BRACKETS.matcher(text);
    if (bare.matches()) {
      String right = "[" + bare.group(1) + "]:" + bare.group(2);
      String why = "put an IPv6 address in brackets before its port: " + right;
      throw wrong(setting, text, why);
    }
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      String why = "it must be HOST:PORT, such as 127.0.0.1:29500 or [::1]:29500" + or;
      throw wrong(setting, text, why);
    }
    String digits = matcher.group("port");
    int port = digits.matches("[0-9]{1,9}") ? Integer.parseInt(digits) : 0;
    if (port < 1 || port > LAST_PORT) {
      String why = "its port must be a number from 1 to " + LAST_PORT + "; correct what sets it";
      throw wrong(setting, text, why);
    }
    String literal = matcher.group("literal");
    String host = literal == null ? matcher.group("name") : literal;
    if (ANY.matcher(host).matches()) {
      String why = "'" + host + "' is every address of a host; name one by which others reach it";
      throw wrong(setting, text, why);
    }
    return of(setting, text, host, port);
  }

  /**
   * Returns an address with a host name that is not looked up. Throws InvalidArgumentException if
   * the host is malformed. Messages name {@code setting} and {@code text}, its value.
   */
  public static InetSocketAddress of(String setting, String text, String host, int port) {
    if (!HOST.matcher(host).matches()) {
      throw wrong(setting, text, "'" + host + "' is not a host name; give a host name or an"
          + " address");
    }
    return InetSocketAddress.createUnresolved(host, port);
  }

  private static RuntimeException wrong(String setting, String text, String why) {
    String shown = setting + " is '" + Texts.printable(text) + "'; " + Texts.printable(why);
    return new InvalidArgumentException(shown);
  }

  /**
   * Returns the address with its host looked up. Messages begin with {@code where}.
   *
   * @throws org.windlass.error.InvalidArgumentException if the host is unknown
   */
  public static InetSocketAddress resolved(String where, InetSocketAddress parsed) {
    try {
      return Sockets.resolved(parsed);
    } catch (UnknownHostException e) {
      throw new InvalidArgumentException(where + ": " + e.getMessage());
    }
  }

  /**
   * Resolves the host, repeatedly until the deadline, since the name of a starting host may be
   * registered later.
   *
   * @throws org.windlass.error.DeadlineExceededException if the host is unknown at the deadline
   */
  public static InetSocketAddress awaited(String where, InetSocketAddress parsed, Deadline until) {
    while (true) {
      try {
        return Sockets.resolved(parsed);
      } catch (UnknownHostException e) {
        long left = TimeUnit.NANOSECONDS.toMillis(until.leftNs());
        if (left <= 0) {
          throw new DeadlineExceededException(
              where + ": " + e.getMessage() + " after " + Deadline.text(until.deadline())
                  + "; correct the name, or see why it is not known here");
        }
        Waits.pause(where, Math.min(RESOLVE_AGAIN_MS, left));
      }
    }
  }
}
