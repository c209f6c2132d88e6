// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.Arrays;
import java.util.List;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Runs;

/**
 * Compares a written tensor with the values that the layouts and the source tensors define. It
 * reads both from their files. It uses only the definitions of placements, casts and reductions,
 * and no code of the planner, the transfer or the kernels.
 *
 * @param name the name of the written tensor
 * @param shape its global shape
 * @param parts the source tensors that it is made of
 * @param between is called repeatedly by the comparing threads. An exception ends the comparison
 */
public record SlowCheck(String name, long[] shape, List<SourcePart> parts, Runnable between) {
  /**
   * Compares a target rank's tensor with the expected values, and its padding with zeros.
   *
   * @param division how ranks hold the tensor
   * @throws VerificationFailedException naming the tensor, the first wrong index and both ranks
   */
  public void compareRank(Division division, int rank, SafetensorsFile file) {
    compare(Holding.of(division, shape, rank), "target rank " + rank, file);
  }

  /** Compares a tensor that was written whole with the expected values. */
  public void compareWhole(SafetensorsFile file) {
    compare(Runs.whole(shape), "the whole tensor in " + file.path(), file);
  }

  private void compare(Runs target, String who, SafetensorsFile file) {
    StoredTensor stored = new StoredTensor(file, name);
    List<Box> boxes = parts.stream().flatMap(part -> part.boxes(target, stored).stream()).toList();
    long covered = boxes.stream().mapToLong(Box::elements).sum();
    long elements = target.elements(new long[shape.length], shape);
    if (covered != elements) {
      throw new IllegalStateException(
          "tensor " + name + ": the source pieces hold " + covered + " of " + elements
              + " elements of " + who);
    }
    Box.firstDifference(boxes, between)
        .ifPresent(
            first -> {
              throw new VerificationFailedException(
                  "tensor \"" + name + "\" differs at index " + Arrays.toString(first.index()) + ": "
                      + who + " holds 0x" + Long.toHexString(first.found()) + ", and "
                      + first.part().rankOf(first.index()) + " gives 0x"
                      + Long.toHexString(first.expected()));
            });
    stored.requirePadding(target, who, between);
  }
}
