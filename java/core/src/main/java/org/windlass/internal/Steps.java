// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/** A receiver of the steps of one rank in a run of a transfer; dtypes are those of the C ABI. */
public interface Steps {
  /**
   * Where a box begins.
   *
   * @param view a tensor of the transfer; or -1 - n: as a target the rank's staged box n, as a
   *     source the n-th box that its rank stages for this one
   * @param start in that view
   */
  record Place(int view, long[] start) {}

  /** The next box that the rank stages, dense at {@code offset} of its phase's half. */
  void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers);

  /**
   * A box that the rank writes: what lies at {@code source} on each of {@code ranks}, folded by
   * {@code op} where they are several, by way of dtype {@code wire}.
   *
   * @param phase in which it runs; one that reads a stage runs in the phase after that was staged
   */
  void write(
      int phase, Place target, long[] length, List<Integer> ranks, Place source, int wire, int op);
}
