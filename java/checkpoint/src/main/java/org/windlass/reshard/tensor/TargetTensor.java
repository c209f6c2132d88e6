// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;

/**
 * Describes a tensor of the checkpoint that is written. Its ranks have the numbers of the files of
 * OUT.
 *
 * @param name the tensor's unique name
 * @param division how ranks hold the tensor
 * @param firstRank number to add to a file's number to get the rank that writes the file, as
 *     numbered together with the ranks of IN
 * @param defaulted whether a default source or target layout shards a dimension that the tensor
 *     lacks
 */
public record TargetTensor(
    String name,
    long[] shape,
    DType dtype,
    Division division,
    int firstRank,
    boolean defaulted) {
  /** Returns the layout of the tensor, or of its first part. */
  public Layout to() {
    return division.layout();
  }

  /**
   * Throws InvalidArgumentException for a Partial layout, because targets hold values and not terms
   * of a reduction.
   */
  public static void refusePartial(Layout to) {
    if (to.hasPartial()) {
      throw new InvalidArgumentException(
          to + ": a target cannot be Partial; use R in place of P to give each rank the sum");
    }
  }

  /** Returns the global shape as a list. */
  public List<Long> shapeList() {
    return Arrays.stream(shape).boxed().toList();
  }

  /** Returns the indices of the tensor that a rank of {@link #to} holds. */
  public Runs held(int rank) {
    return division.held(shape, rank);
  }

  /** Returns whether some rank has only a part of a dimension. */
  public boolean isCut(int dim) {
    return division.isCut(shape, dim);
  }

  /** Returns the size of the whole tensor in bytes. */
  public long bytes() {
    return dtype.bytesOf(elements(shape));
  }

  /** Returns the number of elements of a tensor with this shape. */
  public static long elements(long[] shape) {
    long elements = 1;
    for (long extent : shape) {
      elements *= extent;
    }
    return elements;
  }
}
