// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;

/**
 * A comparison of a tensor as it was written with what the layouts say about those that were read.
 * It reads both from their files and goes by the meaning of placements, casts and reductions alone:
 * nothing here comes from the planner, the transfer or the kernels.
 */
public final class SlowCheck {
  /** Elements that a thread compares at a time, about. */
  static final long SHARE = 1 << 20;

  private final String name;
  private final long[] shape;
  private final List<SourcePart> parts;
  private final Runnable between;

  /**
   * @param name the tensor's name where it was written
   * @param shape its global shape
   * @param parts what it is made of
   * @param between is called again and again by the threads that compare, and may throw to end it
   */
  public SlowCheck(String name, long[] shape, List<SourcePart> parts, Runnable between) {
    this.name = name;
    this.shape = shape;
    this.parts = parts;
    this.between = between;
  }

  /**
   * Compares what a target rank was given with what the source says.
   *
   * @throws VerificationFailedException naming the tensor, the first index that differs and both ranks
   */
  public void compareRank(Layout to, int rank, SafetensorsFile file) {
    compare(Holding.of(to, shape, rank), "target rank " + rank, new StoredTensor(file, name));
  }

  /**
   * Compares what a target rank was given of a tensor that is fused of parts: its piece of each,
   * one after another.
   *
   * @param each what cuts each part by itself
   * @param dim the dimension along which parts and pieces lie one after another
   * @param extents each part's extent of it
   * @throws VerificationFailedException naming the tensor, the first index that differs and both ranks
   */
  public void compareFused(
      Layout each, int dim, List<Long> extents, int rank, SafetensorsFile file) {
    List<Holding> pieces = new ArrayList<>();
    long offset = 0;
    for (long extent : extents) {
      long[] part = shape.clone();
      part[dim] = extent;
      pieces.add(Holding.of(each, part, rank).shifted(dim, offset));
      offset += extent;
    }
    Holding held = Holding.joined(pieces, dim);
    compare(held, "target rank " + rank, new StoredTensor(file, name));
  }

  /** Compares a whole tensor that was written with what the source says. */
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
    long elements = Holding.elements(target.shape());
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
