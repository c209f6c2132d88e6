// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * The log of Windlass, {@code org.windlass}. Its logger is made at the first message, since that
 * loads about 100 classes, which a process that starts need not wait for.
 */
public final class Log {
  private Log() {}

  private static final class Lazy {
    static final System.Logger LOGGER = System.getLogger("org.windlass");
  }

  /** Logs a warning as it is. */
  public static void warn(String message) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, message);
  }

  /** Logs a warning, whose format is one of {@link java.text.MessageFormat}. */
  public static void warn(String format, Object... arguments) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, format, arguments);
  }

  /** Logs a warning with the stack trace of its cause. */
  public static void warn(String message, Throwable cause) {
    Lazy.LOGGER.log(System.Logger.Level.WARNING, message, cause);
  }

  /** Logs an error with the stack trace of its cause. */
  public static void error(String message, Throwable cause) {
    Lazy.LOGGER.log(System.Logger.Level.ERROR, message, cause);
  }
}
