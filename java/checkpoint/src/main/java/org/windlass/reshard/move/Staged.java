// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.windlass.Tensor;
import org.windlass.checkpoint.SafetensorsWriter;
import org.windlass.reshard.tensor.Leg;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Holds a window of a target in memory until it is written to its file.
 *
 * @param file the file
 * @param target the tensor in the file
 * @param start the first indices of the window in the file's tensor
 * @param shape the window's extents
 * @param firstByte the offset of the window's first byte in the tensor
 * @param bytes the memory, aligned for any dtype
 * @param watch finds values in the memory that are out of range, or null
 * @param home the rank whose part of an arena holds the memory, or {@link Arena#ANYWHERE}
 */
record Staged(
    SafetensorsWriter file,
    TargetTensor target,
    long[] start,
    long[] shape,
    long firstByte,
    Tensor bytes,
    Overflows.@Nullable Watch watch,
    int home) {
  // The page cache allocates memory for a write in pieces of the size of the call. Recently freed
  // pieces of this size are available, while larger ones were up to four times slower.
  private static final long CALL_BYTES = 256 << 10;

  /** Returns the window as a tensor of its dtype. */
  Tensor elements() {
    return Tensor.of(bytes.address(), bytes.bytes(), bytes, target.dtype(), shape);
  }

  /** Returns the first indices of a leg in the window. */
  long[] place(Leg leg) {
    long[] place = leg.targetStart().clone();
    Arrays.setAll(place, d -> leg.targetStart()[d] - start[d]);
    return place;
  }

  /**
   * Writes bytes {@code begin} to {@code end} of the window, each rounded up to a whole word. Runs
   * {@code called} after each system call.
   */
  void write(long begin, long end, Runnable called) {
    long last = rounded(end);
    for (long at = rounded(begin); at < last; at += CALL_BYTES) {
      int length = (int) Math.min(CALL_BYTES, last - at);
      ByteBuffer piece = bytes.asByteBuffer(at, length);
      if (watch != null) {
        watch.look(piece);
      }
      file.write(target.name(), firstByte + at, piece);
      called.run();
    }
  }

  private long rounded(long at) {
    return Math.min((at + Long.BYTES - 1) / Long.BYTES * Long.BYTES, bytes.bytes());
  }
}
