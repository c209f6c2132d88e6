// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/**
 * Receives the steps that one rank runs in a transfer. A run has phases. Data that is written to a
 * staging buffer in one phase is read in the next. Dtypes are numbers of the C ABI. The default
 * methods do nothing.
 */
public interface Steps {
  /**
   * The start of a box in a tensor or in a staging buffer.
   *
   * @param view index of a tensor of the transfer, or {@code -1 - n} for box {@code n} in a staging
   *     buffer. For the target of a write, it is box {@code n} in this rank's own staging buffer.
   *     For the source of a write, it is box {@code n} that the source rank stages for this rank.
   * @param start index of the box's first element in that tensor's view, or in the staged box
   */
  record Place(int view, long[] start) {}

  /**
   * Reserves the next box in this rank's staging buffer. A later write fills it.
   *
   * @param phase phase in which the box is written
   * @param shape extents of the box, which is contiguous
   * @param offset distance in bytes from the start of the half of the staging buffer that {@code
   *     phase} uses
   * @param readers ranks that read the box
   */
  default void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers) {}

  /**
   * Writes a box. If there are several {@code ranks}, the boxes at {@code source} on each of them
   * are combined by {@code op}. The elements are rounded to dtype {@code wire} before they are cast
   * to the target's dtype.
   *
   * @param phase phase in which the step runs; for a staged box, the phase after the staging
   */
  default void write(
      int phase, Place target, long[] length, List<Integer> ranks, Place source, int wire, int op) {}
}
