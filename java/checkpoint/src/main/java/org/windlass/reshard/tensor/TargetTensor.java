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
 * A tensor of the checkpoint that is written.
 *
 * @param name its name, which no other has
 * @param shape the global shape
 * @param dtype its dtype
 * @param to the layout as it applies to this tensor
 * @param firstFile how far the numbers of its files lie below the ranks of {@code to}
 * @param fuse how it is cut where it is fused of parts that the layout cuts one by one
 * @param defaulted whether a default layout, its own or its sources', shards a dimension that the
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

  /** The number of the file that holds a rank's part. */
  public int fileOf(int rank) {
    return rank - firstFile;
  }

  /** The mesh by the numbers of the files. */
  public DeviceMesh files() {
    return firstFile == 0 ? to.mesh() : to.mesh().at(0);
  }

  /** The layout as messages have it: over the numbers of the files. */
  public Layout shown() {
    return firstFile == 0 ? to : new Layout(files(), to.placements());
  }

  public List<Long> shapeList() {
    return Arrays.stream(shape).boxed().toList();
  }

  /** Returns the runs that a rank of {@link #to} holds, in the order of the whole tensor. */
  public Runs held(int rank) {
    return fuse.map(each -> each.runs(shape, rank)).orElseGet(() -> Runs.of(to, shape, rank));
  }

  /** Bytes of the whole tensor. */
  public long bytes() {
    return dtype.bytesOf(elements(shape));
  }

  public static long elements(long[] shape) {
    long elements = 1;
    for (long extent : shape) {
      elements *= extent;
    }
    return elements;
  }
}
