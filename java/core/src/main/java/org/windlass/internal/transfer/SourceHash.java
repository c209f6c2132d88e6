// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.ByteBuffer;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;
import org.windlass.internal.call.Endpoint;

/**
 * Computes the XXH64 of boxes of a transfer's sources, after the reduction and casts of a transfer.
 * The boxes may be on any ranks. Each hash is a call on the transfer's communicator. So if a rank
 * fails, its peers can tell how long their sources may still be read. The caller has pinned the
 * transfer. Only one thread at a time may use it.
 */
public final class SourceHash {
  private static final int BOX = 2 * Long.BYTES * Native.WL_MAX_DIMS;

  private final TransferHandle transfer;

  private ByteBuffer buffer = Structs.allocate(BOX + Integer.BYTES);

  public SourceHash(TransferHandle transfer) {
    this.transfer = transfer;
  }

  /**
   * Returns the hash of a box of a source. If there are several {@code ranks}, their boxes are
   * combined by {@code op}. The elements are rounded to {@code wire}, then to {@code dtype}.
   *
   * @param binding index of the source among those of the transfer
   * @param start index of the box's first element in the ranks' local tensors
   * @param length extents of the box
   */
  public long of(
      int binding,
      int[] ranks,
      long[] start,
      long[] length,
      int op,
      int wire,
      int dtype,
      long seed) {
    Endpoint endpoint = transfer.endpoint();
    if (buffer.capacity() < BOX + ranks.length * Integer.BYTES) {
      buffer = Structs.allocate(BOX + ranks.length * Integer.BYTES);
    }
    for (int d = 0; d < start.length; d++) {
      buffer.putLong(d * Long.BYTES, start[d]);
      buffer.putLong(BOX / 2 + d * Long.BYTES, length[d]);
    }
    for (int i = 0; i < ranks.length; i++) {
      buffer.putInt(BOX + i * Integer.BYTES, ranks[i]);
    }
    long address = NativeMemory.address(buffer);
    return endpoint.call(
        (out, error) ->
            Native.wl_transfer_hash(
                transfer.handle,
                binding,
                address + BOX,
                ranks.length,
                address,
                address + BOX / 2,
                op,
                wire,
                dtype,
                seed,
                out,
                error));
  }
}
