// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.LinkedHashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A daemon thread that checks every open communicator of this process. It aborts calls that have
 * been blocked for more than 10 ms and whose thread was interrupted. It also unpins memory of
 * failed calls. It exists only while a communicator is open.
 */
final class Watcher {
  /** Milliseconds between two checks while a call is in progress. */
  private static final long BUSY_MS = 10;

  /** Milliseconds between two checks while no call is in progress. */
  private static final long IDLE_MS = 40;

  private static final Object LOCK = new Object();

  /** Open communicators. Guarded by {@code LOCK}. */
  private static final Set<Endpoint> ENDPOINTS = new LinkedHashSet<>();

  private static @Nullable Thread thread;

  private Watcher() {}

  static void add(Endpoint endpoint) {
    synchronized (LOCK) {
      if (thread == null) {
        Thread made = new Thread(null, Watcher::watch, "windlass-watcher", 0, false);
        made.setDaemon(true);
        made.setContextClassLoader(null);
        made.start();
        thread = made; // once there is one: where it can't start, the next to come tries again
      }
      ENDPOINTS.add(endpoint);
    }
  }

  static void remove(Endpoint endpoint) {
    synchronized (LOCK) {
      ENDPOINTS.remove(endpoint);
    }
  }

  private static void watch() {
    while (!over()) {
      // Checks again once the heap has room. A full heap must not stop this thread.
    }
  }

  private static boolean over() {
    try {
      lookAtAll();
      return true;
    } catch (OutOfMemoryError e) {
      return false;
    }
  }

  private static void lookAtAll() {
    boolean busy = false;
    for (; ; ) {
      Endpoint[] watched;
      synchronized (LOCK) {
        if (!ENDPOINTS.isEmpty()) {
          pause(busy ? BUSY_MS : IDLE_MS);
        }
        if (ENDPOINTS.isEmpty()) {
          thread = null;
          return;
        }
        watched = ENDPOINTS.toArray(new Endpoint[0]);
      }
      busy = false;
      for (Endpoint endpoint : watched) {
        busy |= endpoint.look();
      }
    }
  }

  private static void pause(long millis) {
    try {
      LOCK.wait(millis);
    } catch (InterruptedException e) {
      // No code interrupts the watcher on purpose, so it continues.
    }
  }
}
