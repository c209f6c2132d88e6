// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.windlass.internal.Deadlines;

/**
 * A group of ranks that are threads of this process. {@link #run} gives each rank a thread; callers
 * with threads of their own take each rank's {@link #communicator}.
 */
public final class LocalGroup implements AutoCloseable {
  private final List<Communicator> communicators;
  private final LocalHandles.Unclosed unclosed;
  private final AtomicBoolean running = new AtomicBoolean();

  LocalGroup(int ranks, CommunicatorOptions options) {
    Objects.requireNonNull(options, "options");
    Duration deadline = options.deadline();
    long[] handles =
        LocalHandles.create(
            ranks,
            options.firstSequence(),
            options.cores(),
            options.blocks(),
            Deadlines.nanos(deadline, WindlassException::of),
            options.adjustThreads());
    List<Communicator> made = new ArrayList<>(ranks);
    for (long handle : handles) {
      made.add(new Communicator(handle, deadline, this, "local"));
    }
    this.communicators = Collections.unmodifiableList(made);
    this.unclosed = LocalHandles.watch(this, "LocalGroup of " + ranks + " ranks");
  }

  /** Number of ranks. */
  public int size() {
    return communicators.size();
  }

  /** Rank {@code rank}'s communicator; one thread at a time calls operations on it. */
  public Communicator communicator(int rank) {
    if (rank < 0 || rank >= size()) {
      throw new InvalidArgumentException(
          "communicator: rank is " + rank + "; it must lie in [0, " + size() + ")");
    }
    return communicators.get(rank);
  }

  /**
   * Runs {@code body} once for each rank, each on a new daemon thread named {@code
   * windlass-rank-N}, and returns when all are over. A body that throws aborts the communicator, so
   * that no peer waits for it.
   *
   * @throws E the first failure, with the others suppressed in it
   */
  public <E extends Exception> void run(RankBody<E> body) throws E {
    Objects.requireNonNull(body, "body");
    execute(
        communicator -> {
          body.run(communicator);
          return null;
        });
  }

  /** {@link #run} with a result from each rank, in rank order. */
  public <T, E extends Exception> List<T> call(RankFunction<T, E> function) throws E {
    Objects.requireNonNull(function, "function");
    return execute(function);
  }

  private <T, E extends Exception> List<T> execute(RankFunction<T, E> function) throws E {
    if (!running.compareAndSet(false, true)) {
      throw new InvalidArgumentException(
          "run: another run of this group is in progress; each rank has one thread at a time");
    }
    try {
      return new RankThreads<T, E>(communicators, function).run();
    } finally {
      running.set(false);
    }
  }

  /**
   * Closes every rank's communicator. Idempotent; legal while ranks are inside operations.
   *
   * <p>Ranks whose threads still call operations, outside of {@link #run}, may be one operation
   * apart when they are closed, which looks as if they had called different things: {@link
   * Communicator#abort} one of them first.
   *
   * @throws MismatchException as {@link Communicator#close} does, once all are closed; not during a
   *     {@link #run}, which ends with what its ranks throw, nor where a failure stands, which a call has thrown
   */
  @Override
  public void close() {
    unclosed.closed();
    // Whoever saw a failure has thrown it.
    boolean told = running.get() || communicators.stream().anyMatch(LocalGroup::hasFailed);
    WindlassException first = null;
    for (Communicator communicator : communicators) {
      try {
        communicator.close();
      } catch (WindlassException e) {
        first = first == null ? e : first; // of one failure record, the same from every rank
      }
    }
    if (first != null && !told) {
      throw first;
    }
  }

  private static boolean hasFailed(Communicator communicator) {
    return communicator.failure().filter(e -> !(e instanceof ClosedException)).isPresent();
  }

  @Override
  public String toString() {
    return "LocalGroup of " + size() + " ranks";
  }
}
