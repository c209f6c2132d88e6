// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.Deadline;
import org.windlass.internal.call.PendingCall;

/**
 * An operation in progress, which a caller awaits or cancels. A method whose name ends in {@code
 * Async} submits an operation and returns it. Examples are {@link Collectives#runAsync} and {@link
 * PointToPoint#sendAsync}. The methods of {@link StreamCollectives} enqueue one on a stream. All
 * methods are legal from any thread at any time.
 *
 * <pre>{@code
 * var sum = comm.runAsync(c -> c.allReduce(gradients, ReduceOp.SUM));
 * compute();
 * sum.await();
 * }</pre>
 *
 * <p>Once the operation is over, its outputs are complete, and its inputs may be changed or freed.
 * A failure is reported even if no thread awaits the operation. If the failure ended the
 * communicator, later calls throw it. Otherwise it is logged once the operation is unreachable.
 *
 * @param <T> type of the operation's result
 */
public final class Operation<T extends @Nullable Object> {
  private final PendingCall<T> call;

  Operation(PendingCall<T> call) {
    this.call = call;
    call.reportUnlessAsked(this);
  }

  /**
   * Blocks until the operation is over. Returns its result, or throws its exception.
   *
   * <p>If the thread is interrupted, this method throws an {@link AbortedException}, and the
   * thread's interrupt flag is set. The operation continues, and the communicator stays alive.
   *
   * @throws CancellationException if it was cancelled before it began
   */
  public T await() {
    return call.await(Long.MAX_VALUE);
  }

  /**
   * Waits like {@link #await()}, but no longer than {@code deadline}.
   *
   * @throws DeadlineExceededException if {@code deadline} has passed. In this case the operation
   *     continues, and the communicator stays alive. The same exception is thrown if the operation
   *     itself failed at its own deadline; then {@link #isDone} returns true
   */
  public T await(Duration deadline) {
    return call.await(Deadline.nanos(deadline));
  }

  /** Returns true if the operation is over: it succeeded, failed or was cancelled. */
  public boolean isDone() {
    return call.isDone();
  }

  /**
   * Ends the operation:
   *
   * <ul>
   *   <li>If it has not begun, it is withdrawn, and the communicator stays alive. Peers must
   *       withdraw theirs too. Otherwise they fail with a mismatch or a passed deadline.
   *   <li>If it is in progress, the communicator is aborted on every rank.
   *   <li>If it is over, nothing happens.
   * </ul>
   *
   * @return true if it was withdrawn
   */
  public boolean cancel() {
    return call.cancel();
  }

  /** Returns a text such as {@code Operation, in progress}. */
  @Override
  public String toString() {
    return "Operation, " + (isDone() ? "over" : "in progress");
  }

  /**
   * Returns a future that completes when the operation is over. Cancelling it calls {@link
   * #cancel}. Dependent actions without an executor run on the communicator's thread, before the
   * operations that are queued there.
   */
  public CompletableFuture<T> toCompletableFuture() {
    return call.future();
  }
}
