// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.Arrays;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.SafetensorsWriter;

/**
 * A window of a target in memory, until it is written to its file.
 *
 * @param file the file
 * @param name the tensor in it
 * @param dtype its dtype
 * @param start where the window begins in the file's tensor
 * @param shape the window's extents
 * @param firstByte the window's first byte, counted from the tensor's own
 * @param bytes the memory, aligned for any dtype
 * @param home the rank in whose part of an arena that is, or {@link Arena#ANYWHERE}
 */
record Staged(
    SafetensorsWriter file,
    String name,
    DType dtype,
    long[] start,
    long[] shape,
    long firstByte,
    Tensor bytes,
    int home) {
  // The page cache takes memory for what one call writes in pieces as large. Pieces of this size are
  // found among what was freed lately; larger ones were up to four times slower.
  private static final long CALL_BYTES = 256 << 10;

  /** The window with its dtype. */
  Tensor elements() {
    return Tensor.of(bytes.address(), bytes.bytes(), bytes, dtype, shape);
  }

  /** Where a leg begins in the window. */
  long[] place(Leg leg) {
    long[] place = leg.targetStart().clone();
    Arrays.setAll(place, d -> leg.targetStart()[d] - start[d]);
    return place;
  }

  /** Writes bytes {@code begin} to {@code end} of the window; {@code called} hears of each call. */
  void write(long begin, long end, Runnable called) {
    for (long at = begin; at < end; at += CALL_BYTES) {
      int length = (int) Math.min(CALL_BYTES, end - at);
      file.write(name, firstByte + at, bytes.asByteBuffer(at, length));
      called.run();
    }
  }
}
