// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * One platform thread that makes a communicator's calls for virtual and ForkJoin threads, whose
 * carriers and workers a blocked native call would take away from others. It ends when idle.
 */
final class Handoff {
  private static final long IDLE_SECONDS = 10;

  /** How long an interrupted caller's call may go on before it counts as blocked. */
  private static final long GRACE_MS = 10;

  private static final MethodHandle IS_VIRTUAL = isVirtual();

  private final ThreadPoolExecutor executor;

  Handoff(String name) {
    executor =
        new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(null, task, name, 0, false);
              thread.setDaemon(true);
              return thread;
            },
            (task, shutDown) -> task.run()); // the communicator is closed: the call only says so
    executor.allowCoreThreadTimeOut(true);
  }

  void shutdown() {
    executor.shutdown();
  }

  /** Whether others depend on {@code thread} not being blocked in native code. */
  static boolean shared(Thread thread) {
    return thread instanceof ForkJoinWorkerThread || virtual(thread);
  }

  private static boolean virtual(Thread thread) {
    if (IS_VIRTUAL == null) {
      return false;
    }
    try {
      return (boolean) IS_VIRTUAL.invokeExact(thread);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static MethodHandle isVirtual() {
    try {
      return MethodHandles.lookup()
          .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
    } catch (NoSuchMethodException | IllegalAccessException e) {
      return null; // before Java 21
    }
  }

  <T> T run(Supplier<T> call, Endpoint endpoint) {
    FutureTask<T> task = new FutureTask<>(call::get);
    executor.execute(task);
    if (Thread.currentThread() instanceof ForkJoinWorkerThread) {
      blockManaged(task, endpoint);
    }
    return await(task, endpoint);
  }

  /** Lets the pool run another worker while this one waits. */
  private static void blockManaged(FutureTask<?> task, Endpoint endpoint) {
    try {
      ForkJoinPool.managedBlock(
          new ForkJoinPool.ManagedBlocker() {
            @Override
            public boolean block() {
              awaitDone(task, endpoint);
              return true;
            }

            @Override
            public boolean isReleasable() {
              return task.isDone();
            }
          });
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static <T> T await(FutureTask<T> task, Endpoint endpoint) {
    awaitDone(task, endpoint);
    boolean interrupted = Thread.interrupted();
    try {
      return task.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException failure) {
        throw failure;
      }
      throw (Error) e.getCause();
    } catch (InterruptedException e) {
      throw new AssertionError("a finished task doesn't wait", e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Waits for the end of {@code task}; an interrupt ends the communicator and stays set. */
  private static void awaitDone(FutureTask<?> task, Endpoint endpoint) {
    boolean interrupted = false;
    boolean aborted = false;
    while (!task.isDone()) {
      try {
        if (interrupted && !aborted) {
          task.get(GRACE_MS, TimeUnit.MILLISECONDS);
        } else {
          task.get();
        }
      } catch (InterruptedException e) {
        interrupted = true;
      } catch (TimeoutException e) {
        aborted = true;
        endpoint.abort(endpoint.interrupted(Thread.currentThread()));
      } catch (ExecutionException e) {
        break;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
