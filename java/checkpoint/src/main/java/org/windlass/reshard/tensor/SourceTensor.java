// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import org.windlass.DType;
import org.windlass.layout.Layout;

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

  /** Returns this tensor under a name that is tied to it. */
  public SourceTensor tied(String name) {
    return new SourceTensor(name, stored, shape, dtype, from, defaulted);
  }
}
