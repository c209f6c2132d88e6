// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;

/** A thread inside a call, and what comes of it. */
final class Caller {
  final AtomicReference<Throwable> failure = new AtomicReference<>();
  volatile boolean interruptFlag;
  private volatile long left;
  final Thread thread;

  Caller(Runnable call) throws InterruptedException {
    CountDownLatch entering = new CountDownLatch(1);
    thread =
        new Thread(
            () -> {
              entering.countDown();
              failure.set(catchThrowable(call::run));
              left = System.nanoTime();
              interruptFlag = Thread.currentThread().isInterrupted();
            });
    thread.start();
    entering.await();
    Thread.sleep(50);
  }

  /** Milliseconds from an interrupt to the end of the call. */
  double interrupt() throws InterruptedException {
    long start = System.nanoTime();
    thread.interrupt();
    return leftAfterMs(start);
  }

  /** Milliseconds from {@code start} to the end of the call. */
  double leftAfterMs(long start) throws InterruptedException {
    thread.join();
    return (left - start) / 1e6;
  }
}
