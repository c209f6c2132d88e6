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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.memory.Leaks;

/**
 * One call in a {@link CallQueue}, and its result. If the communicator fails or is closed while the
 * call is queued, the call gets that failure and does not run. Only a call of {@link
 * Endpoint#callAfterFailure} still runs on a failed communicator, unless that is closed.
 *
 * @param <T> type of the result
 */
public final class QueuedCall<T> implements Runnable {
  /** Milliseconds between an interrupt of the waiting thread and the abort of the communicator. */
  private static final long GRACE_MS = 10;

  private final Endpoint endpoint;
  private final CallQueue queue;
  private final Supplier<@Nullable RuntimeException> obstacle;

  /** True if the call waits for the end of an operation on a stream, and can't be removed. */
  private final boolean follows;

  private final CompletableFuture<T> outcome = new CompletableFuture<>();

  private final AtomicBoolean claimed = new AtomicBoolean();

  /** The code of the call, which refers to the objects that it uses. Null once the call is over. */
  private @Nullable Supplier<T> call;

  private volatile boolean asked;

  /** True if the call failed and the communicator lives. No later call reports such a failure. */
  private boolean untold;

  /**
   * Creates a call that waits in {@code queue}.
   *
   * @param obstacle returns the exception that the call throws instead of running, or null to run
   *     it
   * @param follows true if the call only waits for the end of an operation on a stream; it then
   *     always runs
   */
  QueuedCall(
      Endpoint endpoint,
      CallQueue queue,
      Supplier<@Nullable RuntimeException> obstacle,
      boolean follows,
      Supplier<T> call) {
    this.endpoint = endpoint;
    this.queue = queue;
    this.obstacle = obstacle;
    this.follows = follows;
    this.call = call;
  }

  @Override
  public void run() {
    if (!claimed.compareAndSet(false, true)) {
      return;
    }
    T result = null;
    Throwable failure;
    try {
      failure = obstacle.get();
      if (failure == null) {
        result = Objects.requireNonNull(call).get();
      }
    } catch (Throwable thrown) {
      failure = thrown;
    }
    finish(result, failure);
  }

  private void finish(@Nullable T result, @Nullable Throwable failure) {
    untold = failure != null && !endpoint.failed();
    call = null;
    queue.left();
    if (failure == null) {
      outcome.complete(result);
    } else {
      outcome.completeExceptionally(failure);
    }
  }

  /** Removes the call if it has not begun, and ends it with {@code why}. Returns true if it did. */
  private boolean withdraw(Throwable why) {
    if (follows || !claimed.compareAndSet(false, true)) {
      return false;
    }
    queue.remove(this);
    finish(null, why);
    return true;
  }

  /** Waits without a limit. An interrupt aborts the communicator; the thread's flag stays set. */
  T join() {
    boolean interrupted = false;
    boolean aborted = false;
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

  /** Waits at most {@code nanos} ns. The call goes on after a timeout or an interrupt. */
  public T await(long nanos) {
    asked = true;
    Thread thread = Thread.currentThread();
    if (!outcome.isDone() && queue.runs(thread)) {
      throw new InvalidArgumentException(
          "await: the operation of rank " + endpoint.rank
              + " waits for the one that awaits it; both run on thread \"" + thread.getName()
              + "\"");
    }
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

  /**
   * Removes the call from the queue if it has not begun. If it is in progress, aborts the
   * communicator.
   *
   * @return true if the call was removed
   */
  public boolean cancel() {
    asked = true;
    if (withdraw(new CancellationException("cancelled before it began"))) {
      return true;
    }
    if (!outcome.isDone()) {
      endpoint.abort("an operation of rank " + endpoint.rank + " was cancelled in progress");
    }
    return false;
  }

  public boolean isDone() {
    return outcome.isDone();
  }

  public CompletableFuture<T> future() {
    asked = true;
    CompletableFuture<T> future =
        new CompletableFuture<>() {
          @Override
          public boolean cancel(boolean mayInterruptIfRunning) {
            if (!isDone()) {
              QueuedCall.this.cancel();
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
  public void reportUnlessAsked(Object handle) {
    Leaks.watch(handle, new Dropped(this));
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

  private static final class Dropped extends Leaks.Resource {
    private final QueuedCall<?> call;

    Dropped(QueuedCall<?> call) {
      super(null);
      this.call = call;
    }

    @Override
    protected void free() {
      call.report();
    }
  }
}
