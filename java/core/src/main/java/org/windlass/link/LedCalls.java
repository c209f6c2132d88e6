// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.Arrays;
import java.util.function.Function;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.internal.Deadline;

/**
 * Runs calls that rank 0 of a job makes on a link for all ranks of the job. Each rank reports to
 * rank 0 that it has entered the call, and the time that it has left. Rank 0 sends the result to
 * each rank. Reports and results go through a window of the job, which stays usable if the link
 * fails.
 */
final class LedCalls implements AutoCloseable {
  /** Index of a signal at rank 0: the number of the last call that a rank has entered. */
  private static final int CAME = 0;

  /**
   * Index of a signal from rank 0. The value is twice the number of completed calls, plus 1 once
   * all ranks have entered the next call.
   */
  private static final int ANSWERED = 1;

  private static final int SIGNALS = 2;

  /** Number of words of a result. Each rank's remaining time follows them in {@link #words}. */
  private static final int RESULT = 5;

  private final LinkSide side;
  private final Duration grace;
  private final Window window;
  private final Signals signals;
  private final DistributedTensor words;

  private final Tensor own;

  /** Number of completed calls. */
  private long calls;

  /**
   * Creates the window. Collective over the job.
   *
   * @param grace time beyond a deadline for which ranks wait for one another
   */
  LedCalls(LinkSide side, Duration grace, Deadline until) {
    this.side = side;
    this.grace = grace;
    Communicator job = side.communicator();
    int count = RESULT + job.size();
    long bytes = Signals.bytes(SIGNALS, job.size()) + count * (long) Long.BYTES;
    window = side.on(() -> job.window(bytes, until.left()));
    signals = window.signals(SIGNALS);
    words = window.tensor(DType.I64, count);
    own = Tensor.allocate(DType.I64, count);
  }

  /**
   * Runs {@code call} on rank 0 once all ranks have entered this method, and returns its result on
   * every rank. Collective over the job.
   *
   * @param leftNs nanoseconds that this rank has left; {@code call} gets the smallest value of all
   *     ranks
   * @param failed result on the other ranks if {@code call} throws
   */
  long[] make(long leftNs, long[] failed, Function<Deadline, long[]> call) {
    if (side.rank() != 0) {
      return side.on(() -> awaitResult(leftNs));
    }
    Deadline agreed = side.on(() -> awaitAll(leftNs));
    long[] result = failed;
    try {
      result = call.apply(agreed);
      return result;
    } finally {
      long[] told = result;
      side.on(() -> tell(told));
    }
  }

  private long[] awaitResult(long leftNs) {
    put(0, RESULT + side.rank(), leftNs);
    signals.notify(0, CAME, calls + 1);
    // Rank 0 waits for the other ranks, and may have entered the call later than this rank.
    await(0, ANSWERED, 2 * calls + 1, Deadline.of(leftNs).later(grace.multipliedBy(2)));
    calls++;
    await(0, ANSWERED, 2 * calls, Deadline.of(leftNs).later(grace));
    long[] all = new long[RESULT + side.size()];
    words.copyTo(all);
    return Arrays.copyOf(all, RESULT);
  }

  private Deadline awaitAll(long leftNs) {
    Deadline coming = Deadline.of(leftNs).later(grace);
    long leastNs = leftNs;
    for (int rank = 1; rank < side.size(); rank++) {
      await(rank, CAME, calls + 1, coming);
      leastNs = Math.min(leastNs, words.getLong(RESULT + rank));
    }
    notifyAll(2 * calls + 1);
    return Deadline.of(leastNs);
  }

  private Void tell(long[] result) {
    calls++;
    for (int rank = 1; rank < side.size(); rank++) {
      put(rank, 0, result);
    }
    notifyAll(2 * calls);
    return null;
  }

  private void notifyAll(long value) {
    for (int rank = 1; rank < side.size(); rank++) {
      signals.notify(rank, ANSWERED, value);
    }
  }

  private void await(int rank, int signal, long value, Deadline until) {
    signals.withDeadline(until.left()).await(rank, signal, value);
  }

  private void put(int rank, int first, long... values) {
    Handover.put(window, own, rank, words, first, values);
  }

  @Override
  public void close() {
    window.close();
    own.close();
  }
}
