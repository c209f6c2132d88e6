// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.internal.Native;

/**
 * The thread of one rank of a group, which runs one body after another. It starts with the first and
 * lives as long as the group; between bodies it holds nothing of the caller's.
 */
final class RankWorker {
  private final String name;
  private final int place;
  private final boolean stays;

  /** Made with the group, since it keeps the class loaders of those that call its constructor. */
  private final Thread thread;

  /** Guarded by this, as is all below. */
  private boolean hasBegun;

  private Runnable body;
  private ClassLoader loader;
  private boolean hasEnded;

  /**
   * A thread that has not begun.
   *
   * @param place the number of the core, among those that it may use, where it begins; -1 for any
   * @param stays whether it stays there
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
   * Has the thread run {@code next}, which throws nothing, under the caller's context class loader.
   *
   * @return false if {@link #end} was called before; then nothing runs {@code next}
   * @throws OutOfMemoryError if the thread can't be made
   */
  synchronized boolean begin(Runnable next) {
    if (body != null) {
      throw new IllegalStateException(name + " runs a body");
    }
    if (hasEnded) {
      return false;
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
        // Out of memory, as the body's own failure was told; the thread has bodies to come.
      }
    }
  }

  private synchronized boolean hasNext() {
    while (body == null && !hasEnded) {
      try {
        wait();
      } catch (InterruptedException e) {
        // Meant for a body that is over.
      }
    }
    if (body == null) {
      return false;
    }
    thread.setContextClassLoader(loader);
    return true;
  }

  /** No frame of a thread that waits keeps the body. */
  private void runNext() {
    Runnable next;
    synchronized (this) {
      next = body;
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
    thread.setContextClassLoader(null);
    thread.setPriority(Thread.NORM_PRIORITY);
    thread.setUncaughtExceptionHandler(null);
    if (!thread.getName().equals(name)) {
      thread.setName(name);
    }
    Thread.interrupted();
    notifyAll();
  }

  /** Waits until the body is over, for so long at most; whether it is. */
  synchronized boolean await(long ms) throws InterruptedException {
    if (body != null) {
      wait(ms);
    }
    return body == null;
  }

  /** Whether a body is not over yet. */
  synchronized boolean isBusy() {
    return body != null;
  }

  Thread thread() {
    return thread;
  }

  /** Interrupts the body, if one runs. */
  synchronized void interrupt() {
    if (body != null) {
      thread.interrupt();
    }
  }

  /** Where the body is; empty where none runs. */
  synchronized StackTraceElement[] stack() {
    return body == null ? new StackTraceElement[0] : thread.getStackTrace();
  }

  /** Has the thread end, once the body that it runs is over. */
  synchronized void end() {
    hasEnded = true;
    notifyAll();
  }
}
