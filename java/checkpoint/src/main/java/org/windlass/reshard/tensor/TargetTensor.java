// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;

/**
 * Describes a tensor of the checkpoint that is written.
 *
 * @param name the tensor's unique name
 * @param shape the global shape
 * @param dtype the dtype
 * @param division how ranks hold it; its layouts are as they apply to this tensor
 * @param firstFile the number to subtract from a rank of {@link #to} to get its file number
 * @param defaulted whether a default layout, its own or of a source, shards a dimension that the
 *     tensor lacks
 */
public record TargetTensor(
    String name,
    long[] shape,
    DType dtype,
    Division division,
    int firstFile,
    boolean defaulted) {
  /** Returns the layout of the tensor, or of its first part. */
  public Layout to() {
    return division.layout();
  }

  /** Refuses a target that holds terms instead of values. */
  public static void refusePartial(Layout to) {
    if (to.hasPartial()) {
      throw new InvalidArgumentException(to + ": a target cannot be Partial");
    }
  }

  /** Returns the number of the file that holds a rank's part. */
  public int fileOf(int rank) {
    return rank - firstFile;
  }

  /** Returns the division with the numbers of the files instead of ranks. */
  public Division shown() {
    return firstFile == 0 ? division : division.fromZero();
  }

  /** Returns the mesh with the numbers of the files instead of ranks. */
  public DeviceMesh files() {
    return shown().layout().mesh();
  }

  /** Returns the global shape as a list. */
  public List<Long> shapeList() {
    return Arrays.stream(shape).boxed().toList();
  }

  /** Returns the runs that a rank of {@link #to} holds, in the order of the whole tensor. */
  public Runs held(int rank) {
    return division.held(shape, rank);
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
