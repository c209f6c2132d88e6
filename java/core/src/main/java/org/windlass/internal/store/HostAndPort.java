// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/** HOST:PORT as settings have it: its parser, which looks up no name, and its look-up. */
public final class HostAndPort {
  public static final int LAST_PORT = 65_535;

  private static final long LOOK_UP_AGAIN_MS = 200;

  /** A name or an address; one of IPv6 may end in an interface. */
  private static final Pattern HOST =
      Pattern.compile("[A-Za-z0-9._-]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9._-]+)?");

  /** An address of IPv6 and a port, which only brackets tell apart. */
  private static final Pattern WITHOUT_BRACKETS =
      Pattern.compile("([0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9._-]+)?):([0-9]+)");

  /** All addresses of a host, in either family: where it may listen, and nobody finds it. */
  private static final Pattern ANY = Pattern.compile("[0.]+|[0:]+");

  private static final Pattern TEXT =
      Pattern.compile("(?:\\[(?<literal>[^\\[\\]]+)\\]|(?<name>[^:\\[\\]]+)):(?<port>.*)");

  private HostAndPort() {}

  /**
   * Such as {@code 127.0.0.1:29500} or {@code [::1]:29500}; InvalidArgument for what is none.
   *
   * @param setting where {@code text} stands
   * @param or what else it may be, as the message goes on; may be empty
   */
  public static InetSocketAddress parse(
      String setting, String text, String or, FailureMaker failures) {
    Matcher bare = WITHOUT_BRACKETS.matcher(text);
    if (bare.matches()) {
      throw refused(
          setting,
          text,
          "an address of IPv6 stands in brackets before its port: ["
              + bare.group(1) + "]:" + bare.group(2),
          failures);
    }
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw refused(
          setting,
          text,
          "it must be HOST:PORT, such as 127.0.0.1:29500 or [::1]:29500" + or,
          failures);
    }
    String digits = matcher.group("port");
    int port = digits.matches("[0-9]{1,9}") ? Integer.parseInt(digits) : 0;
    if (port < 1 || port > LAST_PORT) {
      throw refused(
          setting,
          text,
          "its port must be a number from 1 to " + LAST_PORT + "; correct what sets it",
          failures);
    }
    String literal = matcher.group("literal");
    String host = literal == null ? matcher.group("name") : literal;
    if (ANY.matcher(host).matches()) {
      throw refused(
          setting,
          text,
          "'" + host + "' is every address of a host; name one by which others reach it",
          failures);
    }
    return of(setting, text, host, port, failures);
  }

  /**
   * That of a host; InvalidArgument where it is none.
   *
   * @param text of the setting, which has the host
   */
  public static InetSocketAddress of(
      String setting, String text, String host, int port, FailureMaker failures) {
    if (!HOST.matcher(host).matches()) {
      throw refused(
          setting, text, "'" + host + "' is no host; name one, or its address", failures);
    }
    return InetSocketAddress.createUnresolved(host, port);
  }

  /**
   * {@code parsed} with its host looked up, which takes as long as the system's resolver;
   * InvalidArgument where it is not known.
   *
   * @param where it stands, as the message begins
   */
  public static InetSocketAddress resolved(
      String where, InetSocketAddress parsed, FailureMaker failures) {
    try {
      return Sockets.resolved(parsed);
    } catch (UnknownHostException e) {
      throw failures.make(Native.WL_INVALID_ARGUMENT, where + ": " + e.getMessage());
    }
  }

  /**
   * {@code parsed} with its host looked up until it is known: a host that comes up may get its name
   * later. Timeout where it has none by the deadline; Aborted.
   *
   * @param where it stands, as the message begins
   */
  public static InetSocketAddress awaited(
      String where, InetSocketAddress parsed, Deadline until, FailureMaker failures) {
    while (true) {
      try {
        return Sockets.resolved(parsed);
      } catch (UnknownHostException e) {
        long left = TimeUnit.NANOSECONDS.toMillis(until.leftNs());
        if (left <= 0) {
          throw failures.make(
              Native.WL_TIMEOUT,
              where + ": " + e.getMessage() + " after " + Deadline.text(until.deadline())
                  + "; correct the name, or see why it is not known here");
        }
        pause(where, Math.min(LOOK_UP_AGAIN_MS, left), failures);
      }
    }
  }

  private static void pause(String where, long millis, FailureMaker failures) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      throw Waits.interrupted(where, failures);
    }
  }

  private static RuntimeException refused(
      String setting, String text, String why, FailureMaker failures) {
    return failures.make(
        Native.WL_INVALID_ARGUMENT, setting + " is '" + Texts.printable(text) + "'; " + Texts.printable(why));
  }
}
