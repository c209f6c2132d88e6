// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.Deadline;
import org.windlass.internal.call.QueuedCall;

/**
 * An operation that was submitted by {@link Collectives#runAsync} or
 * {@link Collectives#supplyAsync}, or enqueued by {@link Collectives#onStream}. All methods are
 * legal from any thread at any time.
 *
 * <p>Its outputs are complete, and its inputs may be changed or freed, once it is over. One that
 * fails while nobody awaits it isn't lost: later calls say why the communicator died, and where it
 * lives the failure is logged once the operation is unreachable.
 *
 * @param <T> what its call returns
 */
public final class Operation<T> {
  private final QueuedCall<T> call;

  Operation(QueuedCall<T> call) {
    this.call = call;
    call.reportUnlessAsked(this);
  }

  /**
   * Returns once the operation is over, and returns or throws what its call did.
   *
   * <p>It only waits: a thread that is interrupted meanwhile leaves with an {@link
   * AbortedException}, its interrupt flag set, while the operation goes on and the communicator
   * lives.
   *
   * @throws CancellationException if it was cancelled before it began
   */
  public T await() {
    return call.await(Long.MAX_VALUE);
  }

  /**
   * {@link #await()} for no longer than {@code deadline}. Then it leaves with a {@link
   * DeadlineExceededException}, while the operation goes on and the communicator lives; {@link
   * #isDone} tells that from an operation which passed its own deadline.
   */
  public T await(Duration deadline) {
    return call.await(Deadline.nanos(deadline));
  }

  /** Whether it is over, in whatever way. */
  public boolean isDone() {
    return call.isDone();
  }

  /**
   * Ends the operation. Before it has begun, it is taken back: the communicator lives, and peers
   * must take back theirs, or they find a mismatch or time out. In progress, the communicator is
   * aborted on every rank. Afterwards nothing happens.
   *
   * @return whether it was taken back
   */
  public boolean cancel() {
    return call.cancel();
  }

  /** Such as {@code Operation, in progress}. */
  @Override
  public String toString() {
    return "Operation, " + (isDone() ? "over" : "in progress");
  }

  /**
   * A future that ends as the operation does; cancelling it is {@link #cancel}. What depends on it
   * runs on the communicator's thread, ahead of operations that wait there, unless it is given an
   * executor.
   */
  public CompletableFuture<T> toCompletableFuture() {
    return call.future();
  }
}
