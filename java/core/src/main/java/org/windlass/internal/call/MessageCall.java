// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.memory.Lifetime;

/**
 * Asynchronous messages that were begun together. Their memory stays pinned until no rank can
 * access it.
 *
 * @param <T> type of the result
 */
public final class MessageCall<T> extends PendingCall<T> {
  private final MessageCalls calls;
  private final Lifetime[] pinned;
  private final Function<MessageList, T> result;

  /** The messages. Null once they are over. */
  @Nullable MessageList list;

  /** Object that stays reachable until the messages are over. */
  @SuppressWarnings("unused")
  private @Nullable Object reachable;

  /**
   * True if an attempt to withdraw the call found that its messages are over. Guarded by {@code
   * calls}.
   */
  boolean isEnding;

  /** The native number of the messages. 0 before they are begun. Guarded by {@code calls}. */
  long ticket;

  MessageCall(
      Endpoint endpoint,
      MessageCalls calls,
      MessageList list,
      Lifetime[] pinned,
      Object reachable,
      Function<MessageList, T> result) {
    super(endpoint);
    this.calls = calls;
    this.list = list;
    this.pinned = pinned;
    this.reachable = reachable;
    this.result = result;
  }

  /**
   * Completes the call. {@code code} is the native result; {@code failure} is null if the code is
   * Ok.
   */
  void end(int code, @Nullable Throwable failure) {
    MessageList over = list;
    list = null;
    reachable = null;
    endpoint.unpinOnceQuiet(code, pinned);
    T value = null;
    try {
      value = over == null || failure != null ? null : result.apply(over);
    } catch (Throwable e) { // the heap may have no room for the result
      complete(null, e);
      return;
    }
    complete(value, failure);
  }

  @Override
  boolean withdraw(Throwable why) {
    try (Scratch scratch = Scratch.take()) {
      if (!calls.withdraws(this, scratch)) {
        return false;
      }
    }
    end(Native.WL_OK, why);
    return true;
  }

  @Override
  boolean isEnding() {
    synchronized (calls) {
      return isEnding;
    }
  }

  @Override
  boolean isCompletedBy(Thread thread) {
    return calls.runs(thread);
  }
}
