// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;

/**
 * The call in progress of an {@link ExpertParallel}, with the memory that it has pinned. Only the
 * thread inside the call uses it. A call that succeeds allocates nothing.
 */
final class ExpertCall {
  private static final int MOST = 5;

  private final Endpoint endpoint;
  private final @Nullable Memory[] pinned = new Memory[MOST];

  ExpertCall(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  /** Begins a call of {@code thread}. Other threads can't begin one until {@link #end}. */
  void begin(Thread thread) {
    endpoint.begin(thread);
  }

  /**
   * Pins the memory of an argument until {@link #end}, so that it isn't freed. If that fails, ends
   * the call before it throws.
   *
   * @param index index of the pin, less than {@code MOST}; used once in a call
   * @param tensor the argument; null is ignored
   * @throws ClosedException if the tensor's memory was closed
   */
  void pin(int index, @Nullable Tensor tensor, String call, String name) {
    if (tensor == null) {
      return;
    }
    Memory memory = tensor.memory();
    if (memory.onDevice) {
      unpin();
      endpoint.end();
      throw memory.notOfHost(call + ": " + name + " (" + tensor + ")");
    }
    if (!hold(index, memory)) {
      throw new ClosedException(
          call + ": " + name + " (" + tensor + ") is over memory that " + memory.ending());
    }
  }

  /**
   * Pins {@code memory} until {@link #end}. If it was closed, ends the call and throws a
   * ClosedException that says that the {@code owner}, the class of the object that made it, is
   * closed.
   */
  void pinOwn(int index, Tensor memory, String call, Class<?> owner) {
    if (!hold(index, memory.memory())) {
      throw new ClosedException(call + ": the " + owner.getSimpleName() + " is closed");
    }
  }

  private boolean hold(int index, Memory memory) {
    if (memory.hold()) {
      pinned[index] = memory;
      return true;
    }
    unpin();
    endpoint.end();
    return false;
  }

  /** Ends the call, and throws unless {@code code} is {@code WL_OK}. */
  void end(int code) {
    if (code != Native.WL_OK) {
      Memory[] held = pinned.clone();
      Arrays.fill(pinned, null);
      throw endpoint.settle(code, held);
    }
    unpin();
    endpoint.end();
  }

  private void unpin() {
    for (Memory memory : pinned) {
      if (memory != null) {
        memory.unpin();
      }
    }
    Arrays.fill(pinned, null);
  }
}
