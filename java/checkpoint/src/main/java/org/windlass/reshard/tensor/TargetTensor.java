// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
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
 * @param to the layout as it applies to this tensor
 * @param firstFile the number to subtract from a rank of {@code to} to get its file number
 * @param fuse the cut of the parts, if the tensor is fused of parts that the layout cuts separately
 * @param defaulted whether a default layout, its own or of a source, shards a dimension that the
 *     tensor lacks
 */
public record TargetTensor(
    String name,
    long[] shape,
    DType dtype,
    Layout to,
    int firstFile,
    Optional<Fuse> fuse,
    boolean defaulted) {
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

  /** Returns the mesh with the numbers of the files instead of ranks. */
  public DeviceMesh files() {
    return firstFile == 0 ? to.mesh() : to.mesh().at(0);
  }

  /** Returns the layout for messages, with the numbers of the files instead of ranks. */
  public Layout shown() {
    return firstFile == 0 ? to : new Layout(files(), to.placements());
  }

  /** Returns the global shape as a list. */
  public List<Long> shapeList() {
    return Arrays.stream(shape).boxed().toList();
  }

  /** Returns the runs that a rank of {@link #to} holds, in the order of the whole tensor. */
  public Runs held(int rank) {
    return fuse.map(each -> each.runs(shape, rank)).orElseGet(() -> Runs.of(to, shape, rank));
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
