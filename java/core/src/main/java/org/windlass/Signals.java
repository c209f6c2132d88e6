// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;

/**
 * The signals of a {@link Window}: sequences by which ranks tell one another how far they are.
 * Signal {@code i} of a rank has a value for each peer, which that peer alone sets: {@code
 * notify(peer, i, value)} there is what {@code await(peer, i, value)} here waits for.
 *
 * <p>Values are counts. They start at 0 and move forward, by less than 2^30 at a time; nothing
 * resets them. A writer is never 2^30 ahead of what its reader waits for.
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

  /** Bytes of a window that {@code count} signals take on each of {@code ranks} ranks. */
  public static long bytes(int count, int ranks) {
    if (count < 0 || ranks < 0) {
      throw new InvalidArgumentException(
          "bytes: " + (count < 0 ? "count is " + count : "ranks is " + ranks)
              + "; it must be 0 or more");
    }
    return place(count, ranks);
  }

  /** How many signals a rank has. */
  public int count() {
    return count;
  }

  /** Returns the same signals with another deadline for {@link #await}. Keep the result. */
  public Signals withDeadline(Duration deadline) {
    return new Signals(window, offset, count, Deadline.nanos(deadline));
  }

  /**
   * Sets this rank's value of signal {@code index} at {@code peer}. What this rank put, or wrote to
   * memory, before is visible to a peer that waits for the value.
   *
   * @throws InvalidArgumentException if the value is negative, below the signal's own, or 2^30 or
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
   * Returns once {@code peer} has set its value of signal {@code index} here to {@code value} or
   * beyond. A {@link DeadlineExceededException} names the peer and what it set last.
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
   * Returns true if {@link #await} would return at once. If {@link #await} would fail at once, this
   * fails likewise, so a loop around it ends when the peer leaves.
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

  /** Bytes from the window's start to the signal's first line. */
  private long signal(String what, int index) {
    if (index < 0 || index >= count) {
      throw new InvalidArgumentException(
          what + ": index is " + index + "; it must lie in [0, " + count + ")");
    }
    return offset + place(index, window.communicator().size());
  }

  /** Bytes before the lines of signal {@code index}. */
  private static long place(int index, int ranks) {
    return index * (ranks * LINE);
  }
}
