// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.lang.ref.Cleaner;

/**
 * The end of what was dropped without {@code close()}: it is freed, and reported on the logger
 * {@code org.windlass}. Where it was made is recorded only under {@code -Dorg.windlass.leaks=full},
 * since a stack costs microseconds.
 */
public final class Leaks {
  public static final String PROPERTY = "org.windlass.leaks";

  private static final System.Logger LOGGER = System.getLogger("org.windlass");
  private static final Cleaner CLEANER =
      Cleaner.create(
          task -> {
            Thread thread = new Thread(null, task, "windlass-cleaner", 0, false);
            thread.setDaemon(true);
            return thread;
          });

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
      if (!closed && what != null) {
        report();
      }
      free();
    }

    private void report() {
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
