// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import org.windlass.DType;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Describes a tensor of the checkpoint that is read.
 *
 * @param name the tensor's name
 * @param stored the tensor's name in the files, which differs if metadata tie {@code name} to it
 * @param shape the global shape
 * @param dtype the dtype
 * @param from the layout as it applies to this tensor
 * @param defaulted whether a default layout shards a dimension that the tensor lacks
 */
public record SourceTensor(
    String name, String stored, long[] shape, DType dtype, Layout from, boolean defaulted) {
  /** Returns the part of the tensor that a rank of {@link #from} holds. */
  public Runs held(int rank) {
    return Runs.of(from, shape, rank);
  }

  /** Returns the number of terms from which each element is reduced; 1 without a reduction. */
  public int terms() {
    int terms = 1;
    for (int m = 0; m < from.mesh().ndim(); m++) {
      if (from.placements().get(m) instanceof Placement.Partial) {
        terms = Math.multiplyExact(terms, from.mesh().size(m));
      }
    }
    return terms;
  }

  /** Checks that the terms of a Partial tensor reduce. */
  void requireReduce() {
    if (terms() > Native.WL_MAX_RANKS) {
      throw new UnsupportedException(
          "its source layout has " + terms() + " terms; at most " + Native.WL_MAX_RANKS
              + " are reduced");
    }
    from.partialOp()
        .filter(op -> !dtype.canReduce(op))
        .ifPresent(
            op -> {
              throw new UnsupportedException(
                  "partial tensors of " + dtype + " do not reduce by " + op);
            });
  }

  /** Returns this tensor under a name that is tied to it. */
  public SourceTensor tied(String name) {
    return new SourceTensor(name, stored, shape, dtype, from, defaulted);
  }
}
