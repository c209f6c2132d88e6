// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The lifetime of a native thing: it is released once it has been ended and nobody pins it any
 * more. A pin costs one compare-and-swap and never blocks; {@link #end} never waits for a pin.
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

  /** Twice the number of pins, plus one once ended. */
  @SuppressWarnings("unused") // through STATE
  private volatile int state;

  /** Holds off the release until {@link #unpin}. False, and nothing is held, once ended. */
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

  /** Takes back one {@link #pin}. The last one to leave what has ended releases it. */
  public final void unpin() {
    if ((int) STATE.getAndAdd(this, -PIN) == ENDED + PIN) {
      release();
    }
  }

  /** No further pin succeeds; released now, or with the last pin. Idempotent. */
  public final void end() {
    if ((int) STATE.getAndBitwiseOr(this, ENDED) == 0) {
      release();
    }
  }

  public final boolean ended() {
    return (state & ENDED) != 0;
  }

  /** Runs once, on the thread that ended it or that took the last pin back. */
  protected abstract void release();
}
