// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ResourceException;
import org.windlass.internal.Native;

/**
 * Runs calls of one rank's communicator on a thread of its own, in the order in which they arrive.
 * It takes three kinds of calls:
 *
 * <ul>
 *   <li>asynchronous calls;
 *   <li>calls of virtual and ForkJoin threads, because a blocked native call would also block their
 *       carrier or worker thread;
 *   <li>any call that arrives while the queue has calls.
 * </ul>
 *
 * <p>The thread starts with the first call and ends after some seconds without a call.
 */
final class CallQueue {
  private static final long IDLE_SECONDS = 10;
  private static final @Nullable MethodHandle IS_VIRTUAL = isVirtual();
  private static final VarHandle UNFINISHED;

  static {
    try {
      UNFINISHED =
          MethodHandles.lookup().findVarHandle(CallQueue.class, "unfinished", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private final String name;
  private final Runnable started;
  private final ThreadPoolExecutor executor;

  @SuppressWarnings("unused") // through UNFINISHED
  private volatile int unfinished;

  /** Thread that runs the calls, or the last thread that did. Null before the first call. */
  private volatile @Nullable Thread thread;

  CallQueue(String name, Runnable started) {
    this.name = name;
    this.started = started;
    this.executor =
        new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            this::start,
            (call, shutDown) -> call.run()); // the communicator is closed: the call says so
    executor.allowCoreThreadTimeOut(true);
  }

  private Thread start(Runnable worker) {
    Runnable adopted =
        () -> {
          Native.wl_thread_adopt(-1, 0);
          worker.run();
        };
    started.run();
    Thread made = new Thread(null, adopted, name, 0, false);
    made.setDaemon(true);
    thread = made;
    return made;
  }

  /** Returns true if calls are queued, and {@code caller} is not the thread that runs them. */
  boolean precedes(Thread caller) {
    return (int) UNFINISHED.getOpaque(this) != 0 && caller != thread;
  }

  /**
   * Returns true for virtual and ForkJoin threads. While such a thread blocks, other work can't
   * run.
   */
  static boolean mustNotBlock(Thread thread) {
    return thread.getClass() != Thread.class
        && (thread instanceof ForkJoinWorkerThread || virtual(thread));
  }

  boolean hasCalls() {
    return (int) UNFINISHED.getOpaque(this) != 0;
  }

  boolean runs(Thread caller) {
    return caller == thread;
  }

  void add(QueuedCall<?> call) {
    UNFINISHED.getAndAdd(this, 1);
    try {
      executor.execute(call);
    } catch (OutOfMemoryError e) {
      remove(call);
      left();
      throw new ResourceException("no thread \"" + name + "\" for a queued call", e);
    }
  }

  void remove(QueuedCall<?> call) {
    executor.remove(call);
  }

  void left() {
    UNFINISHED.getAndAdd(this, -1);
  }

  void shutdown() {
    executor.shutdown();
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

  private static @Nullable MethodHandle isVirtual() {
    try {
      return MethodHandles.lookup()
          .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
    } catch (NoSuchMethodException | IllegalAccessException e) {
      return null; // before Java 21
    }
  }
}
