// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
import org.windlass.internal.memory.Leaks;

/**
 * The ranks of a communicator that are in this process. {@link #of(int)} makes a communicator whose
 * ranks are all in this process. {@link #fromEnvironment} joins the ranks of other processes.
 * {@link #run} runs code on a thread of each rank. Callers with their own threads use each rank's
 * {@link #communicator}.
 */
public final class LocalGroup implements AutoCloseable {
  private final List<Communicator> communicators;
  private final List<RankWorker> workers;
  private final Leaks.Resource unclosed;
  private final AtomicBoolean running = new AtomicBoolean();
  private volatile boolean closed;

  /** Takes ownership of native handles, in rank order. {@code maker} is the call that made them. */
  LocalGroup(long[] handles, CommunicatorOptions options, String maker) {
    try {
      List<Communicator> made = new ArrayList<>(handles.length);
      for (long handle : handles) {
        made.add(new Communicator(handle, options.deadline(), this, maker));
      }
      this.communicators = Collections.unmodifiableList(made);
      List<RankWorker> threads = RankCores.workers(made, options, RankCores.setting());
      this.workers = threads;
      this.unclosed = Leaks.watch(this, toString(), () -> threads.forEach(RankWorker::end));
    } catch (Throwable e) {
      // Ranks of other processes would wait for these ranks.
      for (long handle : handles) {
        Native.wl_comm_close(handle, 0);
      }
      throw e;
    }
  }

  /** Makes a communicator of {@code ranks} ranks in this process, with default options. */
  public static LocalGroup of(int ranks) {
    return of(ranks, CommunicatorOptions.defaults());
  }

  /**
   * Makes a communicator of {@code ranks} ranks, all in this process.
   *
   * @throws InvalidArgumentException if {@code ranks} is not 1 to 4,096
   * @throws ResourceException if memory or files of this process are exhausted
   */
  public static LocalGroup of(int ranks, CommunicatorOptions options) {
    Objects.requireNonNull(options, "options");
    return new LocalGroup(LocalHandles.create(ranks, options), options, "LocalGroup.of");
  }

  /**
   * Joins the ranks of other processes that a launcher started, with {@code ranks} ranks in this
   * process. Collective. It works like {@link Communicator#fromEnvironment(CommunicatorOptions,
   * Duration)}, which has one rank in each process. Every process passes the same {@code ranks}:
   * process {@code p}, as the launcher numbers it, has {@code ranks} ranks from {@code p * ranks}
   * on.
   */
  public static LocalGroup fromEnvironment(
      int ranks, CommunicatorOptions options, Duration deadline) {
    return fromEnvironment(System.getenv(), ranks, options, deadline);
  }

  /**
   * Joins the ranks of other processes, with the given variables instead of this process's
   * environment. A process that starts the others can use it, for example.
   *
   * @param variables a launcher's variables, as {@link org.windlass.launch.LaunchEnvironment#of}
   *     takes them. If ranks are on several hosts, {@code WINDLASS_HOST} and the variables of UCX
   *     must be set in this process's own environment too
   */
  public static LocalGroup fromEnvironment(
      Map<String, String> variables, int ranks, CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(deadline, "deadline");
    return new EnvironmentStart(Copies.map(variables, "variables"), ranks, options, deadline)
        .joinAll();
  }

  /** Returns the number of ranks of this process. */
  public int size() {
    return communicators.size();
  }

  /** Returns the communicators of this process's ranks, in rank order. */
  public List<Communicator> communicators() {
    return communicators;
  }

  /**
   * Returns rank {@code rank}'s communicator. One thread at a time calls operations on it.
   *
   * @throws InvalidArgumentException if this process has no such rank
   */
  public Communicator communicator(int rank) {
    int first = communicators.get(0).rank();
    if (rank < first || rank >= first + size()) {
      throw new InvalidArgumentException(
          "communicator: rank is " + rank + "; it must lie in [" + first + ", " + (first + size())
              + ")");
    }
    return communicators.get(rank - first);
  }

  /**
   * Runs {@code body} once for each rank, and returns when all bodies have ended.
   *
   * <p>Each rank has a daemon thread, named {@code windlass-rank-N}, from the first run until the
   * group is closed. The thread inherits no thread-local variables of a caller. A body finds the
   * thread-local variables that an earlier body has set. If one refers to the group, the group is
   * collected only after {@link #close}.
   *
   * <p>If a body throws, the communicator is aborted, so that no peer waits for its rank. If a body
   * returns before its rank has entered an operation in which another rank of this group waits, the
   * communicator of that operation is aborted, and the reason names both ranks. So a body must
   * return only after all calls of its rank, including calls of threads that it started. Calls of
   * {@code runAsync} may continue after the return. If a rank ever made such a call, peers wait for
   * that rank until their deadline.
   *
   * <p>A body that neither returns nor calls the library can't be ended. Some seconds after a
   * failure, a warning of logger {@code org.windlass} names the ranks whose bodies still run.
   *
   * @throws E the first failure. Other failures of other ranks are suppressed in it
   */
  public <E extends Exception> void run(RankBody<E> body) throws E {
    Objects.requireNonNull(body, "body");
    execute(
        communicator -> {
          body.run(communicator);
          return true;
        });
  }

  /** Runs a function like {@link #run}, and returns each rank's result in rank order. */
  public <T extends @Nullable Object, E extends Exception> List<T> call(
      RankFunction<T, E> function) throws E {
    Objects.requireNonNull(function, "function");
    return execute(function);
  }

  private <T extends @Nullable Object, E extends Exception> List<T> execute(
      RankFunction<T, E> function) throws E {
    if (!running.compareAndSet(false, true)) {
      throw new InvalidArgumentException(
          "run: another run of this group is in progress; each rank has one thread at a time");
    }
    try {
      if (closed) {
        throw new ClosedException("run: the group is closed");
      }
      return new RankThreads<T, E>(communicators, workers, function).run();
    } finally {
      running.set(false);
    }
  }

  /**
   * Closes every rank's communicator. Idempotent; legal while ranks are inside operations.
   *
   * <p>If threads outside of {@link #run} still call operations, one rank may have called one
   * operation more than another when the group is closed. This is reported as a mismatch. To avoid
   * this, {@link Communicator#abort} one of the ranks first.
   *
   * @throws MismatchException as {@link Communicator#close} does, once all communicators are
   *     closed. It is not thrown during a {@link #run}, which throws the failures of its ranks, nor
   *     after a call has already thrown a failure
   */
  @Override
  public void close() {
    closed = true;
    unclosed.closed();
    workers.forEach(RankWorker::end);
    // A call that got the failure has thrown it.
    boolean told = running.get() || communicators.stream().anyMatch(LocalGroup::hasFailed);
    WindlassException first = null;
    for (Communicator communicator : communicators) {
      try {
        communicator.close();
      } catch (WindlassException e) {
        first = first == null ? e : first; // every rank throws the same failure
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
    int all = communicators.get(0).size();
    return size() == all
        ? "LocalGroup of " + all + " ranks"
        : "LocalGroup of " + size() + " of " + all + " ranks, from rank "
            + communicators.get(0).rank() + " on";
  }
}
