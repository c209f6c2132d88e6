// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.memory.Lifetime;

/**
 * The messages of one rank. A thread makes asynchronous messages progress, and completes their
 * calls. It starts with the first asynchronous message, and ends some seconds after the last one.
 */
public final class MessageCalls {
  private static final long IDLE_MS = 10_000;

  /** Longest time, in nanoseconds, that the thread stays in one native call. */
  private static final long LOOK_NS = 1_000_000_000L;

  /** The messages of a call that waits. Only the thread in that call uses it. */
  public final MessageList list = new MessageList(2);

  private final Endpoint endpoint;
  private final Runnable started;

  /** Calls in progress, by ticket. Guarded by this. */
  private final Map<Long, MessageCall<?>> calls = new HashMap<>();

  /** Thread that completes calls. Null if there is none. Only written under this lock. */
  private volatile @Nullable Thread thread;

  private boolean isClosed;

  /** Thread that collects the messages of a group, or null. */
  private @Nullable Thread grouping;

  MessageCalls(Endpoint endpoint, Runnable started) {
    this.endpoint = endpoint;
    this.started = started;
  }

  /**
   * Begins the messages of {@code list}.
   *
   * @param pinned memory of the messages, which the call unpins
   * @param reachable object that stays reachable until the messages are over
   * @param result makes the result of the call
   */
  public <T> PendingCall<T> start(
      MessageList list,
      long deadlineNs,
      Lifetime[] pinned,
      Object reachable,
      Function<MessageList, T> result) {
    MessageCall<T> call = new MessageCall<>(endpoint, this, list, pinned, reachable, result);
    try (Scratch scratch = Scratch.take()) {
      int code;
      synchronized (this) {
        code =
            Native.wl_messages_start(
                endpoint.handle,
                list.address(),
                list.count(),
                deadlineNs,
                scratch.out(),
                scratch.error());
        call.ticket = scratch.outValue();
        if (code == Native.WL_OK && call.ticket != 0) {
          calls.put(call.ticket, call);
          wake(call);
          return call;
        }
      }
      if (code != Native.WL_OK) {
        endpoint.unpinOnceQuiet(code, pinned);
        throw Failures.of(code, scratch.errorBuffer());
      }
    }
    call.end(Native.WL_OK, null);
    return call;
  }

  /**
   * Runs {@code messages}, which collects the messages of a group. Meanwhile, this thread can't
   * call other operations of this rank.
   */
  public void collect(Runnable messages) {
    requireNoGroup(Thread.currentThread());
    grouping = Thread.currentThread();
    try {
      messages.run();
    } finally {
      grouping = null;
    }
  }

  /** Throws if {@code thread} collects the messages of a group. */
  public void requireNoGroup(Thread thread) {
    if (grouping == thread) {
      throw new InvalidArgumentException(
          "rank " + endpoint.rank + " collects a group, which takes sends and receives of its"
              + " MessageGroup; call collectives and other operations before or after the group");
    }
  }

  /** Makes the thread, or wakes it. If that fails, ends {@code call}. */
  private void wake(MessageCall<?> call) {
    if (thread != null) {
      notifyAll();
      return;
    }
    started.run();
    endpoint.retain();
    Thread made = new Thread(null, this::run, "windlass-messages-" + endpoint.rank, 0, false);
    made.setDaemon(true);
    try {
      made.start();
    } catch (OutOfMemoryError e) {
      endpoint.release();
      endpoint.abort("no thread \"" + made.getName() + "\" for a message");
      var failure = new ResourceException("no thread \"" + made.getName() + "\" for a message", e);
      calls.remove(call.ticket);
      call.end(Native.WL_ABORTED, failure);
      throw failure;
    }
    thread = made;
  }

  boolean runs(Thread caller) {
    return caller == thread;
  }

  /**
   * Returns true if {@code call} was withdrawn; then it never completes by itself. If it returns
   * false, {@code isEnding} of the call tells whether its messages are over.
   */
  synchronized boolean withdraws(MessageCall<?> call, Scratch scratch) {
    if (!calls.containsKey(call.ticket)) {
      call.isEnding = true;
      return false;
    }
    Native.wl_messages_withdraw(endpoint.handle, call.ticket, scratch.out(), scratch.error());
    call.isEnding = scratch.outValue() == 2;
    return scratch.outValue() == 1 && calls.remove(call.ticket) != null;
  }

  private void run() {
    Native.wl_thread_adopt(-1, 0);
    try (Scratch scratch = Scratch.take()) {
      while (awaitCalls()) {
        int code =
            Native.wl_messages_next(endpoint.handle, LOOK_NS, scratch.out(), scratch.error());
        if (code != Native.WL_OK) {
          endAll(code, Failures.of(code, scratch.errorBuffer()));
        } else if (scratch.outValue() != 0) {
          MessageCall<?> over;
          synchronized (this) {
            over = calls.remove(scratch.outValue());
          }
          if (over != null) {
            over.end(Native.WL_OK, null);
          }
        }
      }
    } finally {
      endpoint.release();
    }
  }

  private void endAll(int code, WindlassException failure) {
    List<MessageCall<?>> ended;
    synchronized (this) {
      ended = new ArrayList<>(calls.values());
      calls.clear();
    }
    ended.forEach(each -> each.end(code, failure));
  }

  /**
   * Waits until a call is in progress. If none begins in time, ends the thread's work and returns
   * false.
   */
  private synchronized boolean awaitCalls() {
    try {
      if (calls.isEmpty() && !isClosed) {
        wait(IDLE_MS);
      }
    } catch (InterruptedException e) {
      // No code interrupts this thread on purpose, so it continues.
    }
    if (calls.isEmpty()) {
      thread = null;
      return false;
    }
    return true;
  }

  /** Ends the thread's wait for further calls. */
  synchronized void shutdown() {
    isClosed = true;
    notifyAll();
  }
}
