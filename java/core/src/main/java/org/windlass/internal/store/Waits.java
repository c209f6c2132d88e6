// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/** What all stores say of a call that ended without a result. */
public final class Waits {
  public static final String CLOSED = "this way into the store was closed";

  private Waits() {}

  /** What a wait for another value than {@code seen} lacks; where, follows. */
  public static String lacking(byte[] seen) {
    return seen == null ? "no value in " : "no other value in ";
  }

  /** Sets the thread's flag again. */
  public static RuntimeException interrupted(String call, FailureMaker failures) {
    Thread thread = Thread.currentThread();
    thread.interrupt();
    return failures.make(
        Native.WL_ABORTED, call + ": thread \"" + thread.getName() + "\" was interrupted");
  }
}
