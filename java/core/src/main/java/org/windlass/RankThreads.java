// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Log;

/**
 * Runs a function once on the threads of a group's ranks.
 *
 * @param <T> its result
 * @param <E> the exception that it may throw
 */
final class RankThreads<T extends @Nullable Object, E extends Exception> {
  /** Milliseconds from the first failure to a warning with the ranks whose code still runs. */
  private static final long PATIENCE_MS = 5_000;

  private static final long LOOK_MS = 200;

  private static final String IS_DEAD = "the communicator is dead: ";

  private final List<Communicator> communicators;
  private final List<RankWorker> workers;
  private final RankFunction<T, E> function;
  private final Object[] results;
  private final ReturnedRanks returned;

  /**
   * Failures of the ranks, the first one first. It has room for one failure of each rank. Guarded
   * by itself.
   */
  private final List<Throwable> failures;

  RankThreads(
      List<Communicator> communicators, List<RankWorker> workers, RankFunction<T, E> function) {
    this.communicators = communicators;
    this.workers = workers;
    this.function = function;
    this.results = new Object[communicators.size()];
    this.returned = new ReturnedRanks(communicators);
    this.failures = new ArrayList<>(communicators.size());
  }

  List<T> run() {
    start();
    boolean interrupted = join();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    Throwable root = root();
    if (root != null) {
      throw RankThreads.<RuntimeException>rethrow(root);
    }
    @SuppressWarnings("unchecked") // results holds what the function returned
    List<T> list = (List<T>) Arrays.asList(results);
    return list;
  }

  private void start() {
    // Allocated before the first body begins. If the heap became full between two bodies, the first
    // body would wait alone.
    Runnable[] bodies = new Runnable[results.length];
    for (int i = 0; i < bodies.length; i++) {
      int own = i;
      bodies[i] = () -> runRank(own);
    }
    for (int i = 0; i < bodies.length; i++) {
      try {
        workers.get(i).begin(bodies[i]);
      } catch (ClosedException e) {
        record(e); // close() ends the ranks before this one
        break;
      } catch (Throwable e) {
        // The ranks before this one run: they end by the abort.
        fail(i, e instanceof OutOfMemoryError ? noThread(communicators.get(i).rank(), e) : e);
        break;
      }
    }
  }

  private static Throwable noThread(int rank, Throwable e) {
    try {
      return new ResourceException("run: no thread for rank " + rank, e);
    } catch (OutOfMemoryError again) {
      return e;
    }
  }

  private void runRank(int index) {
    try {
      results[index] = function.call(communicators.get(index));
    } catch (Throwable failure) {
      fail(index, failure);
    }
  }

  /** Records the failure of a rank, then aborts the communicator, so that peers fail too. */
  private void fail(int index, Throwable failure) {
    record(failure);
    Communicator communicator = communicators.get(index);
    try {
      communicator.abortAll(reason(communicator.rank(), failure));
    } catch (OutOfMemoryError e) {
      // The failed rank's communicator is aborted. Later checks find ranks of this process that
      // wait in one of its children.
    }
  }

  private void record(Throwable failure) {
    synchronized (failures) {
      failures.add(failure);
    }
  }

  private static String reason(int rank, Throwable failure) {
    try {
      return "rank " + rank + " ended with " + failure;
    } catch (Throwable e) {
      return "its rank ended with a throwable that has no text";
    }
  }

  /**
   * Waits until all ranks' code has ended, and passes an interrupt on to them. Some time after a
   * failure, logs which ranks still run. Returns true if this thread was interrupted.
   */
  private boolean join() {
    boolean interrupted = false;
    boolean told = false;
    long failedAt = 0;
    for (RankWorker worker : workers) {
      while (worker.isBusy()) {
        try {
          if (worker.await(told ? 0 : LOOK_MS) || told) {
            continue;
          }
          look();
          if (!hasFailed()) {
            continue;
          }
          long now = System.nanoTime();
          failedAt = failedAt == 0 ? now : failedAt;
          if (now - failedAt >= PATIENCE_MS * 1_000_000) {
            told = true;
            tryToTellStuck();
          }
        } catch (InterruptedException e) {
          interrupted = true;
          workers.forEach(RankWorker::interrupt);
        }
      }
    }
    return interrupted;
  }

  private void look() {
    try {
      BitSet over = new BitSet(workers.size());
      for (int i = 0; i < workers.size(); i++) {
        over.set(i, !workers.get(i).isBusy());
      }
      returned.look(workers.stream().map(RankWorker::thread).toList(), over);
    } catch (OutOfMemoryError e) {
      // A later check may find enough memory. The ranks continue.
    }
  }

  private boolean hasFailed() {
    synchronized (failures) {
      return !failures.isEmpty();
    }
  }

  private void tryToTellStuck() {
    try {
      tellStuck();
    } catch (OutOfMemoryError e) {
      // The failure can't be logged. The run ends nevertheless.
    }
  }

  private void tellStuck() {
    StringBuilder inside = new StringBuilder();
    for (int i = 0; i < workers.size(); i++) {
      RankWorker worker = workers.get(i);
      if (worker.isBusy()) {
        StackTraceElement[] stack = worker.stack();
        inside
            .append(inside.isEmpty() ? "" : ", ")
            .append("rank ")
            .append(communicators.get(i).rank())
            .append(stack.length == 0 ? "" : " at " + stack[0]);
      }
    }
    if (inside.isEmpty()) {
      return;
    }
    String failed;
    synchronized (failures) {
      failed = failures.stream().map(Throwable::toString).distinct().collect(Collectors.joining("; "));
    }
    Log.warn(
        "A run has failed, but waits for ranks whose code still runs: " + inside
            + ". That code can't be ended from outside, for example a kernel that loops in a"
            + " phase. Failed so far: " + failed);
  }

  /** Returns the first failure that no other rank caused, with the others suppressed in it. */
  private @Nullable Throwable root() {
    synchronized (failures) {
      if (failures.isEmpty()) {
        return null;
      }
      Throwable root = failures.get(0);
      for (Throwable failure : failures.subList(1, failures.size())) {
        if ((isConsequence(root) && !isConsequence(failure)) || isLater(root, failure)) {
          root = failure;
        }
      }
      for (Throwable failure : failures) {
        if (failure != root && !repeats(failure, root)) {
          root.addSuppressed(failure);
        }
      }
      return root;
    }
  }

  /** Returns true if both throwables are the same failure of a communicator, seen by two ranks. */
  private static boolean repeats(Throwable failure, Throwable root) {
    return failure.getClass() == root.getClass()
        && failure instanceof WindlassException
        && (Objects.equals(failure.getMessage(), root.getMessage()) || isLater(failure, root));
  }

  /** Returns true if {@code failure} only reports that {@code found} has ended the communicator. */
  private static boolean isLater(Throwable failure, Throwable found) {
    return failure.getClass() == found.getClass()
        && Objects.equals(failure.getMessage(), IS_DEAD + found.getMessage());
  }

  private static boolean isConsequence(Throwable failure) {
    return failure instanceof AbortedException;
  }

  /** Throws any throwable, without wrapping it. The only checked exception of ranks' code is E. */
  @SuppressWarnings("unchecked") // X is erased: nothing is cast
  private static <X extends Throwable> X rethrow(Throwable failure) throws X {
    throw (X) failure;
  }
}
