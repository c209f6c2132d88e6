// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;

/** Creates messages of calls that end without a result. They are the same for all stores. */
public final class Waits {
  public static final String CLOSED = "this way into the store was closed";

  private Waits() {}

  /** Returns the start of the message of a wait that saw no other value than {@code seen}. */
  public static String lacking(byte @Nullable [] seen) {
    return seen == null ? "no value in " : "no other value in ";
  }

  /** Returns the exception that {@code call} throws because of {@code why}, its cause. */
  public static WindlassException during(String call, WindlassException why) {
    String message = call + ": " + why.getMessage();
    return WindlassException.of(why.code().number(), message, why, "", why.faultyRanks());
  }

  /** Sleeps, for {@code call}. Throws Aborted if the thread is interrupted. */
  public static void pause(String call, long milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      throw interrupted(call);
    }
  }

  /** Sets the thread's interrupt flag again, and returns what the call throws. */
  public static RuntimeException interrupted(String call) {
    Thread thread = Thread.currentThread();
    thread.interrupt();
    return new AbortedException(call + ": thread \"" + thread.getName() + "\" was interrupted");
  }
}
