// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;

/**
 * The call of an {@link ExpertParallel} in progress: what it has pinned. Whoever is in that call uses
 * it alone. Nothing is allocated unless it fails.
 */
final class ExpertCall {
  private static final int MOST = 5;

  private final Endpoint endpoint;
  private final Memory[] pinned = new Memory[MOST];

  ExpertCall(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  /** Makes {@code thread} the one caller. */
  void begin(Thread thread) {
    endpoint.begin(thread);
  }

  /** Pins the tensor, which may be null, as number {@code index} of the call's. */
  void pin(int index, Tensor tensor, String call, String name) {
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

  /** The same of the memory of {@code owner}, which ends as that is closed. */
  void pinOwn(int index, Tensor memory, String call, Class<?> owner) {
    if (!hold(index, memory.memory())) {
      throw new ClosedException(call + ": the " + owner.getSimpleName() + " is closed");
    }
  }

  /** False where it has ended, and with it the call. */
  private boolean hold(int index, Memory memory) {
    if (memory.hold()) {
      pinned[index] = memory;
      return true;
    }
    unpin();
    endpoint.end();
    return false;
  }

  /** Ends it, by an exception unless {@code code} is Ok. */
  void end(int code) {
    if (code != Native.WL_OK) {
      Memory[] held = pinned.clone();
      forget();
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
    forget();
  }

  private void forget() {
    for (int i = 0; i < MOST; i++) {
      pinned[i] = null;
    }
  }
}
