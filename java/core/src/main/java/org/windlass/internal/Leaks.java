// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The end of what was dropped without {@code close()}: it is freed, and reported on the logger
 * {@code org.windlass}. Where it was made is recorded only under {@code -Dorg.windlass.leaks=full},
 * since a stack costs microseconds.
 */
public final class Leaks {
  public static final String PROPERTY = "org.windlass.leaks";

  private static final System.Logger LOGGER = System.getLogger("org.windlass");
  // The JDK's own thread: one of ours would hold the class loader that it was made under.
  private static final Cleaner CLEANER = Cleaner.create();

  /** A program that closes nothing is told so, and not for each thing that it makes. */
  private static final int MOST_REPORTS = 50;

  private static final AtomicInteger REPORTS = new AtomicInteger();

  private Leaks() {}

  /**
   * Runs {@code resource} once {@code owner} is unreachable, or at the returned handle's {@code
   * clean()}, whichever is first. The resource may not reach its owner.
   */
  public static Cleaner.Cleanable watch(Object owner, Resource resource) {
    return CLEANER.register(owner, resource);
  }

  /** Something native behind a closeable object. */
  public abstract static class Resource implements Runnable {
    private final String what;
    private final Throwable made;
    private volatile boolean closed;

    /**
     * @param what what is reported when it leaks; null if being dropped is a proper end
     */
    protected Resource(String what) {
      this.what = what;
      this.made =
          what != null && "full".equals(System.getProperty(PROPERTY))
              ? new Throwable("made here")
              : null;
    }

    /** Says that the owner was closed: no leak. */
    public final void closed() {
      closed = true;
    }

    @Override
    public final void run() {
      if (closed) {
        free();
        return;
      }
      if (what != null && REPORTS.get() < MOST_REPORTS) {
        report();
      }
      if (!mayWait() || !freesBeside()) {
        free();
      }
    }

    /** Whether {@link #free} may wait for peers or a network: then it keeps nothing else waiting. */
    protected boolean mayWait() {
      return false;
    }

    private boolean freesBeside() {
      try {
        Thread thread = new Thread(null, this::free, "windlass-dropped", 0, false);
        thread.setDaemon(true);
        thread.start();
        return true;
      } catch (OutOfMemoryError noThread) {
        return false;
      }
    }

    private void report() {
      if (REPORTS.incrementAndGet() == MOST_REPORTS) {
        LOGGER.log(
            System.Logger.Level.WARNING,
            MOST_REPORTS + " things were dropped without close(); no more are reported.");
        return;
      }
      String message = what + " was dropped without close(); its memory is released now.";
      if (made != null) {
        LOGGER.log(System.Logger.Level.WARNING, message, made);
      } else {
        LOGGER.log(
            System.Logger.Level.WARNING,
            message + " Run with -D" + PROPERTY + "=full to see where it was made.");
      }
    }

    /** Frees the native side; must not throw. */
    protected abstract void free();
  }
}
