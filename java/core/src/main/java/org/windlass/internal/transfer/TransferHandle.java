// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.ByteBuffer;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Structs;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Lifetime;
import org.windlass.internal.memory.Memory;

/** Handle of a native transfer. The memory of its views stays pinned as long as the handle. */
public final class TransferHandle extends Lifetime {
  public final long handle;
  private final Endpoint endpoint;
  private final Memory[] memories;

  /** Takes ownership of {@code handle} and of one pin of each of {@code memories}. */
  public TransferHandle(long handle, Endpoint endpoint, Memory[] memories) {
    this.handle = handle;
    this.endpoint = endpoint;
    this.memories = memories;
    endpoint.retain();
  }

  /**
   * Returns the bytes written to each of the first {@code count} targets, on {@code rank}, or on
   * all ranks if {@code rank} is -1. The caller has pinned this handle.
   */
  public long[] moved(int rank, int count) {
    ByteBuffer buffer = Structs.allocate(Math.max(1, count) * Long.BYTES);
    long address = NativeMemory.address(buffer);
    Natives.call((out, e) -> Native.wl_transfer_progress(handle, rank, address, count, e));
    long[] moved = new long[count];
    buffer.asLongBuffer().get(moved);
    return moved;
  }

  public Endpoint endpoint() {
    return endpoint;
  }

  /** Unpins this handle. After a failure, first waits until no rank can read its views' memory. */
  public void unpinOnceQuiet() {
    endpoint.keepUntilQuiet(this);
  }

  @Override
  protected void release() {
    Native.wl_transfer_free(handle);
    for (Memory memory : memories) {
      memory.unpin();
    }
    endpoint.release();
  }
}
