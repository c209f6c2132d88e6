// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;

/**
 * Creates the exceptions and messages of calls that end without a result. All kinds of stores use
 * it.
 */
public final class Waits {
  public static final String CLOSED = "this connection to the store was closed";

  private Waits() {}

  /** Returns the start of the message if the value of a key never differed from {@code seen}. */
  public static String lacking(byte @Nullable [] seen) {
    return seen == null ? "no value in " : "no other value in ";
  }

  /**
   * Returns an exception of the class of {@code why}, its cause, with {@code call} in the message.
   */
  public static WindlassException during(String call, WindlassException why) {
    String message = call + ": " + why.getMessage();
    return WindlassException.of(why.code().number(), message, why, "", why.faultyRanks());
  }

  /** Runs a call with the thread's interrupt flag cleared, and restores the flag afterwards. */
  public static void uninterrupted(Runnable call) {
    boolean interrupted = Thread.interrupted();
    try {
      call.run();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Sleeps. Throws Aborted, which names {@code call}, if the thread is interrupted. */
  public static void pause(String call, long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw interrupted(call);
    }
  }

  /** Sets the thread's interrupt flag again, and returns the exception to throw. */
  public static RuntimeException interrupted(String call) {
    Thread thread = Thread.currentThread();
    thread.interrupt();
    return new AbortedException(call + ": thread \"" + thread.getName() + "\" was interrupted");
  }
}
