// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.internal.Native;

/**
 * Runs the bodies of one rank of a group on one thread, one after another. The thread starts with
 * the first body and lives as long as the group. Between bodies it refers to no object of a caller.
 */
final class RankWorker {
  private final String name;
  private final int place;
  private final boolean stays;

  private final Thread thread;

  private boolean hasBegun;

  private @Nullable Runnable body;
  private @Nullable ClassLoader loader;
  private boolean hasEnded;

  /**
   * Creates a worker whose thread has not started.
   *
   * @param place index of the core on which the thread starts, in the list of cores that it may
   *     use; -1 for any
   * @param stays true if the thread may use only this core
   */
  RankWorker(int rank, int place, boolean stays) {
    this.name = "windlass-rank-" + rank;
    this.place = place;
    this.stays = stays;
    this.thread = new Thread(null, this::run, name, 0, false);
    thread.setDaemon(true);
    thread.setPriority(Thread.NORM_PRIORITY);
  }

  /**
   * Runs {@code next}, which throws nothing, on the worker's thread, and returns at once.
   *
   * @throws ClosedException after {@link #end}: the thread may have ended, and nothing would run
   * @throws OutOfMemoryError if the thread can't be made
   */
  synchronized boolean begin(Runnable next) {
    if (body != null) {
      throw new IllegalStateException(name + " runs a body");
    }
    if (hasEnded) {
      throw new ClosedException("run: the group is closed");
    }
    if (!hasBegun) {
      thread.start();
      hasBegun = true;
    }
    body = next;
    loader = Thread.currentThread().getContextClassLoader();
    notifyAll();
    return true;
  }

  private void run() {
    boolean isAdopted = false;
    boolean goesOn = true;
    while (goesOn) {
      try {
        if (!isAdopted) {
          Native.wl_thread_adopt(place, stays ? 1 : 0);
          isAdopted = true;
        }
        goesOn = hasNext();
        if (goesOn) {
          runNext();
        }
      } catch (Throwable e) {
        // For example, the heap was full while a body's failure was recorded. The thread continues.
      }
    }
  }

  private synchronized boolean hasNext() {
    while (body == null && !hasEnded) {
      try {
        wait();
      } catch (InterruptedException e) {
        // The interrupt was meant for a body that is over.
      }
    }
    if (body == null) {
      return false;
    }
    thread.setContextClassLoader(loader);
    return true;
  }

  /** Runs the next body, in a method of its own: the waiting thread must not refer to the body. */
  private void runNext() {
    Runnable next;
    synchronized (this) {
      next = Objects.requireNonNull(body);
    }
    try {
      next.run();
    } finally {
      over();
    }
  }

  private synchronized void over() {
    body = null;
    loader = null;
    notifyAll(); // first, since the next calls may throw
    thread.setContextClassLoader(null);
    thread.setPriority(Thread.NORM_PRIORITY);
    thread.setUncaughtExceptionHandler(null);
    if (!thread.getName().equals(name)) {
      thread.setName(name);
    }
    Thread.interrupted();
  }

  /** Waits at most {@code ms} ms, 0 for no limit, for the body's end. Returns true if it ended. */
  synchronized boolean await(long ms) throws InterruptedException {
    if (body != null) {
      wait(ms);
    }
    return body == null;
  }

  synchronized boolean isBusy() {
    return body != null;
  }

  Thread thread() {
    return thread;
  }

  synchronized void interrupt() {
    if (body != null) {
      thread.interrupt();
    }
  }

  synchronized StackTraceElement[] stack() {
    return body == null ? new StackTraceElement[0] : thread.getStackTrace();
  }

  synchronized void end() {
    hasEnded = true;
    notifyAll();
  }
}
