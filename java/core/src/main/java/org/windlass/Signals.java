// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;

/**
 * The signals of a {@link Window}: counters with which ranks inform each other that data has
 * arrived. Each signal of a rank has a separate value for each peer, and only that peer sets it. A
 * call of {@code await(peer, i, value)} on rank {@code r} waits for {@code notify(r, i, value)} on
 * the peer.
 *
 * <p>Values are counts. They start at 0 and increase by less than 2^30 at a time. Nothing resets
 * them. The value that a writer sets is always less than 2^30 above the value that the reader
 * awaits.
 *
 * <pre>{@code
 * window.put(row, peer, inbox);            // rank 0
 * signals.notify(peer, 0, ++sent);
 *
 * signals.await(0, 0, ++received);         // rank peer: inbox holds the row
 * }</pre>
 */
public final class Signals {
  private static final long LINE = Native.WL_SIGNAL_LINE_BYTES;

  private final Window window;
  private final long offset;
  private final int count;
  private final long deadlineNs;

  Signals(Window window, long offset, int count, long deadlineNs) {
    this.window = window;
    this.offset = offset;
    this.count = count;
    this.deadlineNs = deadlineNs;
  }

  /** Returns the size of {@code count} signals in a window of {@code ranks} ranks, in bytes. */
  public static long bytes(int count, int ranks) {
    if (count < 0 || ranks < 0) {
      throw new InvalidArgumentException(
          "bytes: " + (count < 0 ? "count is " + count : "ranks is " + ranks)
              + "; it must be 0 or more");
    }
    return place(count, ranks);
  }

  /** Returns the number of signals of each rank. */
  public int count() {
    return count;
  }

  /**
   * Returns the same signals with another deadline for {@link #await}. Keep and reuse the result.
   */
  public Signals withDeadline(Duration deadline) {
    return new Signals(window, offset, count, Deadline.nanos(deadline));
  }

  /**
   * Sets this rank's value of signal {@code index} at {@code peer}. A peer that has waited for the
   * value sees all earlier puts and memory writes of this rank.
   *
   * @throws InvalidArgumentException if the value is negative, below the value set last, or 2^30 or
   *     more above it
   */
  public void notify(int peer, int index, long value) {
    if (value < 0) {
      throw new InvalidArgumentException("notify: value is " + value + "; it must be 0 or more");
    }
    if (window.mustQueue()) {
      window.communicator().handOff(() -> notify(peer, index, value));
      return;
    }
    long signal = signal("notify", index);
    Endpoint own = window.enter("notify");
    int code = Native.wl_notify(own.handle, window.handle, peer, signal, value, own.error);
    window.leave(own, code, null);
  }

  /**
   * Blocks until {@code peer} has set its value of signal {@code index} here to at least {@code
   * value}.
   *
   * @throws DeadlineExceededException if the deadline passes; the message names the peer and the
   *     last value that the peer set
   */
  public void await(int peer, int index, long value) {
    if (window.communicator().endpoint.mustHandOff(Thread.currentThread())) {
      window.communicator().handOff(() -> await(peer, index, value));
      return;
    }
    long signal = signal("await", index);
    Endpoint own = window.enter("await");
    int code = Native.wl_wait(own.handle, window.handle, peer, signal, value, deadlineNs, own.error);
    window.leave(own, code, null);
  }

  /**
   * Returns true if {@link #await} would return at once. If {@link #await} would throw an exception
   * at once, this method throws the same one. So a loop around it ends when the peer leaves.
   */
  public boolean test(int peer, int index, long value) {
    if (window.mustQueue()) {
      return window.communicator().endpoint.handOff(() -> test(peer, index, value));
    }
    long signal = signal("test", index);
    Endpoint own = window.enter("test");
    long out = own.scratch.out();
    int code = Native.wl_test(own.handle, window.handle, peer, signal, value, out, own.error);
    boolean reached = own.scratch.outValue() != 0;
    window.leave(own, code, null);
    return reached;
  }

  private long signal(String what, int index) {
    if (index < 0 || index >= count) {
      throw new InvalidArgumentException(
          what + ": index is " + index + "; it must lie in [0, " + count + ")");
    }
    return offset + place(index, window.communicator().size());
  }

  private static long place(int index, int ranks) {
    return index * (ranks * LINE);
  }
}
