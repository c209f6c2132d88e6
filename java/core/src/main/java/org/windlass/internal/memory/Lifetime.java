// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Controls the lifetime of a native object. The object is released once it has ended and has no
 * pins. A call pins the objects that it uses. A pin costs one compare-and-swap and never blocks;
 * {@link #end} never waits for a pin.
 */
public abstract class Lifetime {
  private static final int ENDED = 1;
  private static final int PIN = 2;
  private static final VarHandle STATE;

  static {
    try {
      STATE = MethodHandles.lookup().findVarHandle(Lifetime.class, "state", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** Twice the number of pins, plus 1 once the object has ended. */
  @SuppressWarnings("unused") // through STATE
  private volatile int state;

  /** Delays the release until {@link #unpin}. Returns false if the lifetime has already ended. */
  public final boolean pin() {
    for (; ; ) {
      int seen = (int) STATE.getOpaque(this);
      if ((seen & ENDED) != 0) {
        return false;
      }
      if (STATE.compareAndSet(this, seen, seen + PIN)) {
        return true;
      }
    }
  }

  /** Removes one {@link #pin}. If the object has ended and this was the last pin, releases it. */
  public final void unpin() {
    if ((int) STATE.getAndAdd(this, -PIN) == ENDED + PIN) {
      release();
    }
  }

  /**
   * Ends the object, which can't be pinned afterwards. It is released once it has no pins.
   * Idempotent.
   */
  public final void end() {
    if ((int) STATE.getAndBitwiseOr(this, ENDED) == 0) {
      release();
    }
  }

  public final boolean ended() {
    return (state & ENDED) != 0;
  }

  /** Releases the object. Called once, on the thread that ended it or that removed the last pin. */
  protected abstract void release();
}
