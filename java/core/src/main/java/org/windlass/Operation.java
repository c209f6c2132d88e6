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
 * An operation in progress, which a caller awaits or cancels. A method whose name ends in {@code
 * Async}, such as {@link Collectives#runAsync}, submits an operation and returns it. The methods of
 * {@link StreamCollectives} enqueue one on a stream. All methods are legal from any thread at any
 * time.
 *
 * <pre>{@code
 * var sum = comm.runAsync(c -> c.allReduce(gradients, ReduceOp.SUM));
 * compute();
 * sum.await();
 * }</pre>
 *
 * <p>Once the operation is over, its outputs are complete, and its inputs may be changed or freed.
 * A failure that nobody awaits isn't lost. If it ended the communicator, later calls throw it.
 * Otherwise it is logged once the operation is unreachable.
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
   * Ends the operation:
   *
   * <ul>
   *   <li>Before it has begun, it is withdrawn, and the communicator lives. Peers must withdraw
   *       theirs, or they get a mismatch or exceed their deadline.
   *   <li>In progress, the communicator is aborted on every rank.
   *   <li>After it is over, nothing happens.
   * </ul>
   *
   * @return true if it was withdrawn
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
