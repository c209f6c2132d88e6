// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/** Receives the steps of one rank in a run of a transfer. Dtypes are those of the C ABI. */
public interface Steps {
  /**
   * The place at which a box begins.
   *
   * @param view number of a tensor of the transfer, or {@code -1 - n} for box n in staging memory.
   *     For a target, n counts the rank's own staged boxes. For a source, n counts the boxes that
   *     its rank stages for this one.
   * @param start index of the first element in that view
   */
  record Place(int view, long[] start) {}

  /** Stages the rank's next box, dense, at {@code offset} of its phase's half. */
  void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers);

  /**
   * Writes a box: combines the boxes at {@code source} on each of {@code ranks} by {@code op}, if
   * there are several. Elements go by way of dtype {@code wire}.
   *
   * @param phase phase in which it runs; a step that reads a staged box runs in the phase after it
   *     was staged
   */
  void write(
      int phase, Place target, long[] length, List<Integer> ranks, Place source, int wire, int op);
}
