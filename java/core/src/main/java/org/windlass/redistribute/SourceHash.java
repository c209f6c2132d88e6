// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * The XXH64 of boxes of a transfer's sources, of whatever ranks, as they reach a target. The caller
 * has pinned the transfer. Not for several threads at a time.
 */
final class SourceHash {
  private static final int BOX = 2 * Long.BYTES * Native.WL_MAX_DIMS;
  private static final int SOURCE = Long.BYTES + Structs.Tensor.SIZE;

  private final TransferHandle transfer;

  /** Start and length of the box, pointers to its sources, the sources. */
  private ByteBuffer buffer = Structs.allocate(BOX + SOURCE);

  SourceHash(TransferHandle transfer) {
    this.transfer = transfer;
  }

  /**
   * The hash of the box that source binding {@code binding} of {@code ranks} has at {@code start},
   * folded with {@code op} where they are several, rounded to {@code wire}, then to {@code dtype}.
   */
  long of(
      int binding,
      int[] ranks,
      long[] start,
      long[] length,
      int op,
      int wire,
      int dtype,
      long seed) {
    if (buffer.capacity() < BOX + ranks.length * SOURCE) {
      buffer = Structs.allocate(BOX + ranks.length * SOURCE);
    }
    long address = NativeMemory.address(buffer);
    long lengthAt = address + BOX / 2;
    for (int d = 0; d < start.length; d++) {
      buffer.putLong(d * Long.BYTES, start[d]);
      buffer.putLong(BOX / 2 + d * Long.BYTES, length[d]);
    }
    try (Scratch scratch = Scratch.take()) {
      for (int i = 0; i < ranks.length; i++) {
        int at = BOX + ranks.length * Long.BYTES + i * Structs.Tensor.SIZE;
        buffer.putLong(BOX + i * Long.BYTES, address + at);
        buffer.putInt(at, Structs.Tensor.SIZE);
        check(
            Native.wl_transfer_source(
                transfer.handle,
                ranks[i],
                binding,
                address,
                lengthAt,
                address + at,
                scratch.error()),
            scratch);
      }
      check(
          Native.wl_tensor_hash(
              address + BOX, ranks.length, op, wire, dtype, seed, scratch.out(), scratch.error()),
          scratch);
      return scratch.outValue();
    } finally {
      Reference.reachabilityFence(buffer);
    }
  }

  private void check(int code, Scratch scratch) {
    if (code != Native.WL_OK) {
      throw Failures.of(code, scratch.errorBuffer(), transfer.failures());
    }
  }
}
