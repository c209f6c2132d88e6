// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;

/** Makes a communicator's windows and pools by collective calls. */
final class MemoryCalls {
  private MemoryCalls() {}

  private interface Creation {
    int create(long comm, long bytes, long deadlineNs, long out, long error);
  }

  static Window window(Communicator comm, long bytes, long deadlineNs) {
    long handle = create("window", comm, bytes, 0, deadlineNs, Native::wl_window_create);
    return Window.of(comm, handle, bytes, false);
  }

  static Window deviceWindow(Communicator comm, long bytes, long deadlineNs) {
    long handle =
        create("deviceWindow", comm, bytes, 0, deadlineNs, Native::wl_device_window_create);
    return Window.of(comm, handle, bytes, true);
  }

  static MemoryPool memoryPool(Communicator comm, long bytes, long deadlineNs) {
    long handle = create("memoryPool", comm, bytes, 1, deadlineNs, Native::wl_memory_pool_create);
    return new MemoryPool(comm, comm.endpoint, handle, bytes);
  }

  private static long create(
      String what, Communicator comm, long bytes, int least, long deadlineNs, Creation creation) {
    if (bytes < least) {
      throw new InvalidArgumentException(
          what + ": bytes is " + bytes + "; it must be " + least + " or more");
    }
    return comm.call(
        (out, error) -> creation.create(comm.endpoint.handle, bytes, deadlineNs, out, error));
  }
}
