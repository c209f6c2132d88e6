// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;

/**
 * A {@code wl_transfer_t*} with the memory that it is bound to, which stays pinned as long as it
 * lives.
 */
public final class TransferHandle extends Lifetime {
  public final long handle;
  private final Endpoint endpoint;
  private final Memory[] memories;

  /** Takes over {@code handle} and one pin of each memory. */
  public TransferHandle(long handle, Endpoint endpoint, Memory[] memories) {
    this.handle = handle;
    this.endpoint = endpoint;
    this.memories = memories;
    endpoint.retain();
  }

  /**
   * Bytes written to each of the first {@code count} targets of {@code rank}, of all ranks where it
   * is -1. The caller has pinned it.
   */
  public long[] moved(int rank, int count) {
    ByteBuffer buffer = Structs.allocate(Math.max(1, count) * Long.BYTES);
    try (Scratch scratch = Scratch.take()) {
      long address = NativeMemory.address(buffer);
      int code = Native.wl_transfer_progress(handle, rank, address, count, scratch.error());
      if (code != Native.WL_OK) {
        throw Failures.of(code, scratch.errorBuffer());
      }
      long[] moved = new long[count];
      buffer.asLongBuffer().get(moved);
      return moved;
    }
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
