// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;

/**
 * Compares a written tensor with the values that the layouts and the source tensors define. It
 * reads both from their files. It uses only the definitions of placements, casts and reductions,
 * and no code of the planner, the transfer or the kernels.
 */
public final class SlowCheck {
  /** Approximate number of elements that a thread compares at a time. */
  static final long SHARE = 1 << 20;

  private final String name;
  private final long[] shape;
  private final List<SourcePart> parts;
  private final Runnable between;

  /**
   * Creates a check.
   *
   * @param name the name of the written tensor
   * @param shape its global shape
   * @param parts the source tensors that it is made of
   * @param between is called repeatedly by the comparing threads. An exception ends the comparison
   */
  public SlowCheck(String name, long[] shape, List<SourcePart> parts, Runnable between) {
    this.name = name;
    this.shape = shape;
    this.parts = parts;
    this.between = between;
  }

  /**
   * Compares a target rank's tensor with the expected values, and its padding with zeros.
   *
   * @param entry how ranks hold the tensor
   * @throws VerificationFailedException naming the tensor, the first wrong index and both ranks
   */
  public void compareRank(LayoutFile.Entry entry, int rank, SafetensorsFile file) {
    StoredTensor stored = new StoredTensor(file, name);
    Holding held = Holding.of(entry, rank);
    compare(held, "target rank " + rank, stored);
    stored.requirePadding(held, "target rank " + rank, between);
  }

  /** Compares a tensor that was written whole with the expected values. */
  public void compareWhole(SafetensorsFile file) {
    compare(Holding.whole(shape), "the whole tensor in " + file.path(), new StoredTensor(file, name));
  }

  private void compare(Holding target, String who, StoredTensor stored) {
    List<Box.Share> shares = new ArrayList<>();
    long covered = 0;
    for (SourcePart part : parts) {
      for (SourcePiece piece : part.pieces()) {
        SlowValue value = part.value(piece.terms(), stored.dtype());
        List<Box> boxes = Box.of(part, piece, value, target, stored);
        long elements = boxes.stream().mapToLong(Box::elements).sum();
        value.expect(elements);
        boxes.forEach(box -> shares.addAll(box.shares(SHARE)));
        covered += elements;
      }
    }
    long elements = target.elements();
    if (covered != elements) {
      throw new IllegalStateException(
          "tensor " + name + ": the source pieces hold " + covered + " of " + elements
              + " elements of " + who);
    }
    shares.parallelStream()
        .map(
            share -> {
              between.run();
              return Box.firstDifference(share);
            })
        .flatMap(Optional::stream)
        .min((a, b) -> Arrays.compare(a.index(), b.index()))
        .ifPresent(
            first -> {
              throw new VerificationFailedException(
                  "tensor \"" + name + "\" differs at index " + Arrays.toString(first.index()) + ": "
                      + who + " holds 0x" + Long.toHexString(first.found()) + ", and "
                      + first.part().rankOf(first.index()) + " gives 0x"
                      + Long.toHexString(first.expected()));
            });
  }
}
