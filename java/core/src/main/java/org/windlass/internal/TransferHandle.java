// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

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

  @Override
  protected void release() {
    Native.wl_transfer_free(handle);
    for (Memory memory : memories) {
      memory.unpin();
    }
    endpoint.release();
  }
}
