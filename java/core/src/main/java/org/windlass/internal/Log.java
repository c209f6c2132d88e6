// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * The log of Windlass, {@code org.windlass}. The first message creates the logger. Creating it
 * loads about 100 classes, which would delay the start of a process.
 */
public final class Log {
  private Log() {}

  private static final class Lazy {
    static final System.Logger LOGGER = System.getLogger("org.windlass");
  }

  /** Logs a warning. The message is not a format. */
  public static void warn(String message) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, message);
  }

  /** Logs a warning. The format is that of {@link java.text.MessageFormat}. */
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
