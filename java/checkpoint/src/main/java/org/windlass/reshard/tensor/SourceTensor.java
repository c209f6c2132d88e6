// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.layout.Layout;

/**
 * Describes a tensor of the checkpoint that is read.
 *
 * @param stored the tensor's name in the files; it differs from {@code name} if that is an alias
 * @param division how ranks hold the tensor
 * @param defaulted whether a default layout shards a dimension that the tensor lacks
 */
public record SourceTensor(
    String name, String stored, long[] shape, DType dtype, Division division, boolean defaulted) {
  /** Returns the layout of the tensor, or of its first part. */
  public Layout from() {
    return division.layout();
  }

  /** Returns the indices of the tensor that a rank of {@link #from} holds. */
  public Runs held(int rank) {
    return division.held(shape, rank);
  }

  /** Returns whether some rank has only a part of the tensor. */
  public boolean isCut() {
    return IntStream.range(0, shape.length).anyMatch(d -> division.isCut(shape, d));
  }

  /** Returns the global shape as a list. */
  public List<Long> shapeList() {
    return Arrays.stream(shape).boxed().toList();
  }

  /** Returns this tensor under an alias of its name. */
  public SourceTensor tied(String name) {
    return new SourceTensor(name, stored, shape, dtype, division, defaulted);
  }
}
