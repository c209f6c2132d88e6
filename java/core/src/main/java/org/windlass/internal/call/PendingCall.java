// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.memory.Leaks;

/**
 * An asynchronous call of one rank, and its result.
 *
 * @param <T> type of the result
 */
public abstract class PendingCall<T> {
  /** Milliseconds between an interrupt of the waiting thread and the abort of the communicator. */
  private static final long GRACE_MS = 10;

  final Endpoint endpoint;

  private final CompletableFuture<T> outcome = new CompletableFuture<>();

  private volatile boolean asked;

  /**
   * True if the call failed while the communicator stayed alive. No later call reports such a
   * failure.
   */
  private boolean untold;

  PendingCall(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  /** Ends the call with {@code why} if it has not begun. Returns true if it was ended. */
  abstract boolean withdraw(Throwable why);

  /** Returns true if {@link #withdraw} found that the call is over, so it completes soon. */
  boolean isEnding() {
    return false;
  }

  /** Returns true if {@code thread} is the one that completes the call. */
  abstract boolean isCompletedBy(Thread thread);

  /** Completes the call with {@code failure}, or with {@code result} if {@code failure} is null. */
  final void complete(@Nullable T result, @Nullable Throwable failure) {
    untold = failure != null && !endpoint.failed();
    if (failure == null) {
      outcome.complete(result);
    } else {
      outcome.completeExceptionally(failure);
    }
  }

  /**
   * Waits without a limit. An interrupt of this thread aborts the communicator; the thread's
   * interrupt flag stays set.
   */
  public final T join() {
    boolean interrupted = false;
    boolean aborted = false;
    requireOther(Thread.currentThread());
    endpoint.waits(Thread.currentThread());
    try {
      while (true) {
        try {
          return interrupted && !aborted
              ? outcome.get(GRACE_MS, TimeUnit.MILLISECONDS)
              : outcome.get();
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (TimeoutException e) {
          aborted = true;
          endpoint.abort(endpoint.interrupted(Thread.currentThread()));
          WindlassException failure = endpoint.failure();
          if (failure != null) {
            withdraw(failure);
          }
        } catch (ExecutionException e) {
          throw thrown(Objects.requireNonNull(e.getCause()));
        }
      }
    } finally {
      endpoint.waits(null);
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Waits at most {@code nanos} ns. The call continues after a timeout or an interrupt. */
  public final T await(long nanos) {
    asked = true;
    Thread thread = Thread.currentThread();
    requireOther(thread);
    boolean isUnlimited = nanos == Long.MAX_VALUE;
    if (isUnlimited) {
      endpoint.waits(thread);
    }
    try {
      return outcome.get(nanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      throw thrown(Objects.requireNonNull(e.getCause()));
    } catch (TimeoutException e) {
      throw new DeadlineExceededException(
          "await: the operation of rank " + endpoint.rank + " is not over after "
              + Deadline.text(Duration.ofNanos(nanos)) + "; it goes on");
    } catch (InterruptedException e) {
      thread.interrupt();
      throw new AbortedException(
          "await: thread \"" + thread.getName() + "\" was interrupted; the operation of rank "
              + endpoint.rank + " goes on",
          List.of(endpoint.rank));
    } finally {
      if (isUnlimited) {
        endpoint.waits(null);
      }
    }
  }

  private void requireOther(Thread thread) {
    if (!outcome.isDone() && isCompletedBy(thread)) {
      throw new InvalidArgumentException(
          "await: the operation of rank " + endpoint.rank
              + " waits for the one that awaits it; both run on thread \"" + thread.getName()
              + "\"");
    }
  }

  /**
   * Withdraws the call if it has not begun. If it is in progress, aborts the communicator.
   *
   * @return true if the call was withdrawn
   */
  public final boolean cancel() {
    asked = true;
    if (withdraw(new CancellationException("cancelled before it began"))) {
      return true;
    }
    if (!outcome.isDone() && !isEnding()) {
      endpoint.abort("an operation of rank " + endpoint.rank + " was cancelled in progress");
    }
    return false;
  }

  public final boolean isDone() {
    return outcome.isDone();
  }

  public final CompletableFuture<T> future() {
    asked = true;
    CompletableFuture<T> future =
        new CompletableFuture<>() {
          @Override
          public boolean cancel(boolean mayInterruptIfRunning) {
            if (!isDone()) {
              PendingCall.this.cancel();
            }
            return isCancelled();
          }
        };
    outcome.whenComplete(
        (result, failure) -> {
          if (failure == null) {
            future.complete(result);
          } else {
            future.completeExceptionally(failure);
          }
        });
    return future;
  }

  /**
   * Logs the failure of this call once {@code handle} is unreachable. Logs nothing if a thread has
   * asked for the result, or if the communicator has failed.
   */
  public final void reportUnlessAsked(Object handle) {
    Leaks.watch(handle, null, this::report);
  }

  private void report() {
    if (!asked) {
      outcome.whenComplete(
          (result, failure) -> {
            if (untold) {
              String message =
                  "An operation of rank " + endpoint.rank
                      + " failed and nobody awaited it; its peers may be waiting for that rank.";
              Log.warn(message, failure);
            }
          });
    }
  }

  @SuppressWarnings("unchecked") // X is erased: nothing is cast
  private static <X extends Throwable> RuntimeException thrown(Throwable failure) throws X {
    throw (X) failure;
  }
}
