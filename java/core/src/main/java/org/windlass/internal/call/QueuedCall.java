// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.memory.Leaks;

/**
 * One call in a {@link CallQueue}, and what comes of it. A call that still waits when its
 * communicator dies or is closed ends with that failure; one that is made of dead communicators
 * waits for its turn, and ends where it is closed.
 *
 * @param <T> its result
 */
public final class QueuedCall<T> implements Runnable {
  /** How long an interrupted caller's call may go on before it counts as blocked. */
  private static final long GRACE_MS = 10;

  private final Endpoint endpoint;
  private final CallQueue queue;
  private final Supplier<RuntimeException> obstacle;

  /** Whether it follows what is in progress already, so that it can't be taken back. */
  private final boolean follows;

  private final CompletableFuture<T> outcome = new CompletableFuture<>();

  /** Set by whoever finishes it: the queue's thread as the call begins, or who takes it back. */
  private final AtomicBoolean claimed = new AtomicBoolean();

  /** Keeps what it names reachable, the communicator too; null once over. */
  private Supplier<T> call;

  /** Whether somebody waits for the outcome, or has settled it. */
  private volatile boolean asked;

  /** Whether it failed and the communicator lives, so that no later call tells. */
  private boolean untold;

  /**
   * @param obstacle gives what keeps it from beginning, null for nothing
   * @param follows whether it waits for what is in progress already, and begins whatever happens
   */
  QueuedCall(
      Endpoint endpoint,
      CallQueue queue,
      Supplier<RuntimeException> obstacle,
      boolean follows,
      Supplier<T> call) {
    this.endpoint = endpoint;
    this.queue = queue;
    this.obstacle = obstacle;
    this.follows = follows;
    this.call = call;
  }

  /** On the queue's thread alone. */
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
        result = call.get();
      }
    } catch (Throwable thrown) {
      failure = thrown;
    }
    finish(result, failure);
  }

  private void finish(T result, Throwable failure) {
    untold = failure != null && !endpoint.failed();
    call = null;
    queue.left();
    if (failure == null) {
      outcome.complete(result);
    } else {
      outcome.completeExceptionally(failure);
    }
  }

  /** Ends it if it has not begun. */
  private boolean withdraw(Throwable why) {
    if (follows || !claimed.compareAndSet(false, true)) {
      return false;
    }
    queue.remove(this);
    finish(null, why);
    return true;
  }

  /**
   * Waits like a thread that makes the call itself: an interrupt ends the communicator, and stays
   * set.
   */
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
          withdraw(endpoint.failure());
        } catch (ExecutionException e) {
          throw thrown(e.getCause());
        }
      }
    } finally {
      endpoint.waits(null);
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Waits at most {@code nanos}, and neither that nor an interrupt changes anything. */
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
      throw thrown(e.getCause());
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

  /** Takes it back if it has not begun; ends the communicator if it is in progress. */
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

  /** A future of its own for each caller: completing it by hand changes nothing here. */
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
   * Logs a failure that nobody learns of: {@code handle} became unreachable, nobody asked, and the
   * communicator lives.
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

  /** Throws any throwable as it is. */
  @SuppressWarnings("unchecked") // X is erased: nothing is cast
  private static <X extends Throwable> RuntimeException thrown(Throwable failure) throws X {
    throw (X) failure;
  }

  /** What is left to do once nobody holds a call's handle. */
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
