// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.Log;

/**
 * Frees objects that were dropped without {@code close()}, and reports them on the logger {@code
 * org.windlass}. With {@code -Dorg.windlass.leaks=full}, a report has the stack trace of the
 * object's creation. By default it has none, since a stack trace costs microseconds.
 */
public final class Leaks {
  public static final String PROPERTY = "org.windlass.leaks";

  // The JDK runs this cleaner's thread. A thread of Windlass would hold the class loader that
  // created it.
  private static final Cleaner CLEANER = Cleaner.create();

  private static final Pace PACE = new Pace(50, Duration.ofMinutes(1));

  private static final int MOST_THREADS = 16;

  /**
   * Threads for resources whose {@code free} may wait. The cleaner's thread runs the other
   * resources.
   */
  private static final ThreadPoolExecutor BESIDE = beside();

  private Leaks() {}

  /**
   * Runs {@code resource} once {@code owner} is unreachable, or when the caller calls {@code
   * clean()} on the result, whichever is first. {@code resource} must not refer to {@code owner}.
   */
  public static Cleaner.Cleanable watch(Object owner, Resource resource) {
    resource.cleanable = CLEANER.register(owner, resource);
    return resource.cleanable;
  }

  /**
   * Runs {@code free} as {@link #watch(Object, Resource)} runs a resource. {@code free} must not
   * throw, wait, or refer to {@code owner}.
   *
   * @param what the name that a leak report uses; null if dropping the object is no leak
   */
  public static Resource watch(Object owner, @Nullable String what, Runnable free) {
    Resource resource =
        new Resource(what) {
          @Override
          protected void free() {
            free.run();
          }
        };
    watch(owner, resource);
    return resource;
  }

  public abstract static class Resource implements Runnable {
    private final @Nullable String what;
    private final @Nullable Throwable made;
    private volatile boolean closed;
    private Cleaner.@Nullable Cleanable cleanable;

    /**
     * Creates a resource whose owner is open.
     *
     * @param what the name that a leak report uses; null if dropping the object is no leak
     */
    protected Resource(@Nullable String what) {
      this.what = what;
      this.made =
          what != null && "full".equals(System.getProperty(PROPERTY))
              ? new Throwable("made here")
              : null;
    }

    /** Records that the owner was closed, so there is no leak. */
    public final void closed() {
      closed = true;
    }

    /** Records that the owner was closed, and frees the resource. Idempotent. */
    public final void close() {
      closed();
      Objects.requireNonNull(cleanable).clean();
    }

    @Override
    public final void run() {
      if (closed) {
        free();
        return;
      }
      if (what != null && isReported()) {
        report();
      }
      if (!mayWait() || !freesBeside()) {
        free();
      }
    }

    /**
     * Returns true if a leak of this resource is reported. Override it for a part of another object
     * whose leak is already reported.
     */
    protected boolean isReported() {
      return true;
    }

    /** Returns true if {@link #free} may wait for peers, so that it runs on a separate thread. */
    protected boolean mayWait() {
      return false;
    }

    private boolean freesBeside() {
      try {
        BESIDE.execute(this::free);
        return true;
      } catch (OutOfMemoryError noThread) {
        return false;
      }
    }

    private void report() {
      long unsaid = PACE.next(System.nanoTime());
      if (unsaid < 0) {
        return;
      }
      String message = what + " was dropped without close(); its memory is released now.";
      if (unsaid > 0) {
        message += " Before it, " + unsaid + " more were dropped, without a report.";
      }
      if (made != null) {
        Log.warn(message, made);
      } else {
        Log.warn(
            message + " Run with -D" + PROPERTY + "=full to see where it was made.");
      }
    }

    /** Frees the native resource. Must not throw. */
    protected abstract void free();
  }

  private static ThreadPoolExecutor beside() {
    ThreadPoolExecutor executor =
        new ThreadPoolExecutor(
            MOST_THREADS,
            MOST_THREADS,
            1,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            free -> {
              Thread thread = new Thread(null, free, "windlass-dropped", 0, false);
              thread.setDaemon(true);
              return thread;
            });
    executor.allowCoreThreadTimeOut(true);
    return executor;
  }

  /** Limits the number of reports in each interval of time, and counts the suppressed ones. */
  static final class Pace {
    private final int most;
    private final long timeNs;
    private long beginNs;
    private int told;
    private long unsaid;

    Pace(int most, Duration time) {
      this.most = most;
      this.timeNs = time.toNanos();
      this.told = most;
      this.beginNs = System.nanoTime() - timeNs;
    }

    /**
     * Returns the number of reports that were suppressed since the last logged report. Returns -1
     * if this report is suppressed too.
     *
     * @param nowNs time in nanoseconds
     */
    synchronized long next(long nowNs) {
      if (nowNs - beginNs >= timeNs) {
        beginNs = nowNs;
        told = 0;
      }
      if (told == most) {
        unsaid++;
        return -1;
      }
      told++;
      long before = unsaid;
      unsaid = 0;
      return before;
    }
  }
}
