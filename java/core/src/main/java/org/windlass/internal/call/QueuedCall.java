// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One call in a {@link CallQueue}, and its result. If the communicator fails or is closed while the
 * call is queued, the call ends with that failure and does not run. Only a call of {@link
 * Endpoint#callAfterFailure} still runs on a failed communicator, unless the communicator is
 * closed.
 *
 * @param <T> type of the result
 */
public final class QueuedCall<T> extends PendingCall<T> implements Runnable {
  private final CallQueue queue;
  private final Supplier<@Nullable RuntimeException> obstacle;

  /** True if the call waits for the end of an operation on a stream, and can't be withdrawn. */
  private final boolean follows;

  private final AtomicBoolean claimed = new AtomicBoolean();

  /**
   * The code of the call, which refers to the objects that the call uses. Null once the call is
   * over.
   */
  private @Nullable Supplier<T> call;

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
    super(endpoint);
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
    call = null;
    queue.left();
    complete(result, failure);
  }

  @Override
  boolean withdraw(Throwable why) {
    if (follows || !claimed.compareAndSet(false, true)) {
      return false;
    }
    queue.remove(this);
    finish(null, why);
    return true;
  }

  @Override
  boolean isCompletedBy(Thread thread) {
    return queue.runs(thread);
  }
}
