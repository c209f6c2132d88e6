// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

/** The end of the process: by the command, or by a signal, which takes away what is unfinished. */
final class ProcessEnd {
  private static final int INTERRUPTED = 130;

  private static final Thread HOOK = new Thread(ProcessEnd::bySignal, "windlass-cleanup");

  private ProcessEnd() {}

  /**
   * From now until {@link #exit}, a signal that ends the process takes away what is {@link
   * Unfinished}, and the status is 130.
   */
  static void awaitSignals() {
    try {
      Runtime.getRuntime().addShutdownHook(HOOK);
    } catch (IllegalStateException endingAlready) {
      // Nothing has begun.
    }
  }

  /** Ends the process with this status, unless a signal is about to end it. */
  static void exit(int status) {
    try {
      Runtime.getRuntime().removeShutdownHook(HOOK);
    } catch (IllegalStateException endingAlready) {
      // The hook gives the status; what follows waits for it.
    }
    System.exit(status);
  }

  /** Whether a signal is ending the process: what fails now fails because of that. */
  static boolean isNear() {
    Thread probe = new Thread(() -> {});
    try {
      Runtime.getRuntime().addShutdownHook(probe);
      Runtime.getRuntime().removeShutdownHook(probe);
      return false;
    } catch (IllegalStateException shuttingDown) {
      return true;
    }
  }

  private static void bySignal() {
    try {
      Unfinished.removeAll();
    } finally {
      Runtime.getRuntime().halt(INTERRUPTED);
    }
  }
}
