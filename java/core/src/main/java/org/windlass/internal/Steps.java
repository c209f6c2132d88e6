// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/**
 * Receives the steps of one rank in a run of a transfer. Data is staged in one phase of the run,
 * and read in the next. Dtypes are those of the C ABI.
 */
public interface Steps {
  /**
   * The place at which a box begins.
   *
   * @param view number of a tensor of the transfer, or {@code -1 - n} for box {@code n} in a
   *     staging buffer. The target of a write is box {@code n} that this rank stages. The source of
   *     a write is box {@code n} that the source rank stages for this one.
   * @param start index of the first element, in that tensor's view or in that box
   */
  record Place(int view, long[] start) {}

  /**
   * Reserves the rank's next box in its staging buffer. A write fills it.
   *
   * @param shape extents of the box, which is contiguous
   * @param offset distance in bytes from the start of the half that {@code phase} uses
   * @param readers ranks that read the box
   */
  void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers);

  /**
   * Writes a box. If there are several {@code ranks}, combines the boxes at {@code source} on each
   * of them by {@code op}. Rounds the elements to dtype {@code wire} before they are cast to the
   * target's dtype.
   *
   * @param phase phase in which the step runs; the phase after the staging if it reads a staged box
   */
  void write(
      int phase, Place target, long[] length, List<Integer> ranks, Place source, int wire, int op);
}
