// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * The logger {@code org.windlass}. It is created with the first message, because that loads about
 * 100 classes and would delay the start of a process.
 */
public final class Log {
  private Log() {}

  private static final class Lazy {
    static final System.Logger LOGGER = System.getLogger("org.windlass");
  }

  /** Logs a warning. {@code message} is logged as it is, without a format. */
  public static void warn(String message) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, message);
  }

  public static void warn(String format, Object... arguments) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, format, arguments);
  }

  public static void warn(String message, Throwable cause) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, message, cause);
  }

  public static void error(String message, Throwable cause) {
    Lazy.LOGGER.log(System.Logger.Level.ERROR, message, cause);
  }
}
