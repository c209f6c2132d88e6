// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.Daemon;

/**
 * Watches the number of bytes that have moved. Reports it to a listener, and aborts the run if no
 * byte moved for the length of the deadline.
 */
final class ProgressWatch {
  private static final long LOOK_MILLIS = 50;
  private static final Duration FAREWELL = Duration.ofSeconds(1);

  private final Duration deadline;
  private final LongSupplier moved;
  private final LongSupplier calls;
  private final long total;
  private final LongConsumer listener;
  private final CountDownLatch over = new CountDownLatch(1);
  private volatile boolean complete;
  private volatile @Nullable String expired;
  private volatile @Nullable Throwable refusal;

  /**
   * Creates a watch.
   *
   * @param moved returns the number of bytes that have moved, of {@code total}
   * @param calls returns the number of system calls that have read or written something, which
   *     count as progress too
   * @param listener receives the number of bytes that have moved
   */
  ProgressWatch(
      Duration deadline,
      LongSupplier moved,
      LongSupplier calls,
      long total,
      LongConsumer listener) {
    this.deadline = deadline;
    this.moved = moved;
    this.calls = calls;
    this.total = total;
    this.listener = listener;
  }

  /**
   * Runs {@code body}, which calls operations of the team, and reports to the listener once all
   * bytes have moved. The listener is never interrupted. If the body fails, this method waits at
   * most a second for a listener that is still running.
   *
   * @throws DeadlineExceededException if no byte moved for the length of the deadline, or if the
   *     listener did not return within the same time after the body's end
   * @throws RuntimeException if the listener throws it. An {@link Error} of the listener is thrown
   *     too
   */
  void run(Team team, Runnable body) {
    CompletableFuture<Boolean> watch =
        Daemon.run("windlass-progress", () -> look(team)).thenApply(done -> true);
    try {
      body.run();
      complete = true;
    } catch (AbortedException aborted) {
      if (expired != null) {
        throw new DeadlineExceededException(expired, aborted);
      }
      if (refusal == null) {
        throw aborted;
      }
    } finally {
      over.countDown();
      Duration limit = complete ? deadline : FAREWELL;
      boolean ended = watch.completeOnTimeout(false, limit.toNanos(), TimeUnit.NANOSECONDS).join();
      if (!ended && complete) {
        throw new DeadlineExceededException(
            "the listener of its progress did not return for " + deadline.toMillis() / 1e3 + " s");
      }
    }
    if (refusal instanceof Error) {
      throw (Error) refusal;
    }
    if (refusal != null) {
      throw (RuntimeException) refusal;
    }
  }

  private void look(Team team) {
    long seen = -1;
    long seenCalls = -1;
    long since = System.nanoTime();
    try {
      while (!over.await(LOOK_MILLIS, TimeUnit.MILLISECONDS)) {
        long now = moved.getAsLong();
        long nowCalls = calls.getAsLong();
        if (now != seen || nowCalls != seenCalls) {
          seen = now;
          seenCalls = nowCalls;
          since = System.nanoTime();
          tell(Math.min(now, total));
        } else if (System.nanoTime() - since > deadline.toNanos()) {
          expired =
              "nothing moved for " + deadline.toMillis() / 1e3 + " s after " + now + " of " + total
                  + " bytes" + team.awaited();
          team.abort(expired);
          return;
        }
      }
      if (complete) {
        tell(total);
      }
    } catch (InterruptedException impossible) {
      throw new AssertionError("nobody interrupts this thread, and tell() clears", impossible);
    } catch (RuntimeException | Error thrown) {
      refusal = thrown;
      if (!complete) {
        team.abort("the listener of its progress threw " + thrown);
      }
    }
  }

  private void tell(long bytes) {
    try {
      listener.accept(bytes);
    } finally {
      Thread.interrupted();
    }
  }
}
