// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.time.Duration;
import java.util.function.LongSupplier;
import org.windlass.AbortedException;
import org.windlass.DeadlineExceededException;
import org.windlass.LocalGroup;

/**
 * Looks at how many bytes have moved: tells a listener, and aborts when none moved for the length
 * of the deadline.
 */
final class ProgressWatch {
  private static final long LOOK_MILLIS = 50;

  private final Duration deadline;
  private final LongSupplier moved;
  private final LongSupplier calls;
  private final long total;
  private final ProgressListener listener;
  private volatile String expired;
  private volatile Throwable refusal;

  /**
   * A watch.
   *
   * @param moved bytes that have moved, of {@code total}
   * @param calls of the system that have read or written something, which is progress too
   */
  ProgressWatch(
      Duration deadline,
      LongSupplier moved,
      LongSupplier calls,
      long total,
      ProgressListener listener) {
    this.deadline = deadline;
    this.moved = moved;
    this.calls = calls;
    this.total = total;
    this.listener = listener;
  }

  /**
   * Runs {@code body}, which calls operations of the group.
   *
   * @throws DeadlineExceededException if nothing moved for the length of the deadline
   * @throws RuntimeException that the listener throws; an {@link Error} of it likewise
   */
  void run(LocalGroup group, Runnable body) {
    Thread thread = new Thread(() -> look(group), "windlass-progress");
    thread.setDaemon(true);
    thread.start();
    try {
      body.run();
    } catch (AbortedException aborted) {
      if (expired != null) {
        throw new DeadlineExceededException(expired, aborted);
      }
      if (refusal == null) {
        throw aborted;
      }
    } finally {
      thread.interrupt();
      joined(thread);
    }
    if (refusal instanceof Error) {
      throw (Error) refusal;
    }
    if (refusal != null) {
      throw (RuntimeException) refusal;
    }
    listener.progress(total, total);
  }

  private void look(LocalGroup group) {
    long seen = -1;
    long seenCalls = -1;
    long since = System.nanoTime();
    try {
      while (true) {
        Thread.sleep(LOOK_MILLIS);
        long now = moved.getAsLong();
        long nowCalls = calls.getAsLong();
        if (now != seen || nowCalls != seenCalls) {
          seen = now;
          seenCalls = nowCalls;
          since = System.nanoTime();
          listener.progress(Math.min(now, total), total);
        } else if (System.nanoTime() - since > deadline.toNanos()) {
          expired =
              "nothing moved for " + deadline.toMillis() / 1e3 + " s after " + now + " of " + total
                  + " bytes";
          group.communicator(0).abort(expired);
          return;
        }
      }
    } catch (InterruptedException over) {
      // The body has ended.
    } catch (RuntimeException | Error thrown) {
      refusal = thrown;
      group.communicator(0).abort("the listener of its progress threw " + thrown);
    }
  }

  private static void joined(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
