// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** Runs tasks on threads that do not keep the JVM alive. */
public final class Daemon {
  private Daemon() {}

  /** Creates a thread that runs {@code body}. */
  public static Thread thread(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    return thread;
  }

  /** Starts a task on a thread of its own. */
  public static CompletableFuture<Void> run(String name, Runnable task) {
    return CompletableFuture.runAsync(task, body -> thread(name, body).start());
  }

  /**
   * Waits until a task has ended, and throws what it threw. An interrupt does not end the wait, and
   * stays set.
   */
  public static void join(CompletableFuture<?> task) {
    try {
      task.join();
    } catch (CompletionException failed) {
      throw failed.getCause() instanceof RuntimeException known ? known : failed;
    }
  }
}
