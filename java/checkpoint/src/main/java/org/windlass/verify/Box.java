// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.windlass.reshard.tensor.Runs;

/**
 * Represents elements that both a {@link SourcePart.Piece} and a target rank hold. They are evenly
 * spaced in each dimension of both.
 *
 * @param part the part that the piece belongs to
 * @param value computes the values that the target must have
 * @param stored the target rank's tensor
 * @param sides the dimensions
 * @param sourceAt the index of the first element in the source's stored elements
 * @param targetAt the index of the first element in the target's stored elements
 */
record Box(
    SourcePart part,
    SlowValue value,
    StoredTensor stored,
    List<Side> sides,
    long sourceAt,
    long targetAt) {
  /** Approximate number of elements that a thread compares at a time. */
  private static final long SHARE = 1 << 20;

  /**
   * Describes one dimension.
   *
   * @param start the first index in the target's global tensor
   * @param length the number of elements
   * @param sourceStride the distance between two neighbours in the source, in stored elements
   * @param targetStride the distance between two neighbours in the target, in stored elements
   */
  record Side(long start, long length, long sourceStride, long targetStride) {}

  /**
   * Describes an element with an unexpected value.
   *
   * @param index the element's index in the target's global tensor, for each dimension
   * @param found the bits that the target has
   * @param expected the bits that it should have
   */
  record Difference(SourcePart part, long[] index, long found, long expected) {}

  /** Represents the elements {@code begin} to {@code end} (exclusive) in row-major order. */
  private record Share(Box box, long begin, long end) {}

  /**
   * Returns the elements that a piece and a target rank both hold. There is one box for each
   * combination of overlapping runs of indices in all dimensions.
   */
  static List<Box> of(
      SourcePart part, SourcePart.Piece piece, SlowValue value, Runs target, StoredTensor stored) {
    long[] targetStrides = Holding.rowMajor(target.shape());
    List<Box> boxes = List.of(new Box(part, value, stored, List.of(), 0, 0));
    for (int d = 0; d < targetStrides.length; d++) {
      List<Box> longer = new ArrayList<>();
      for (Runs.Run run : target.dims().get(d)) {
        for (Runs.Run other : piece.held().dims().get(d)) {
          long begin = Math.max(run.start(), other.start());
          long end = Math.min(run.end(), other.end());
          if (begin < end) {
            long sourceSkip = (other.local() + begin - other.start()) * piece.strides()[d];
            long targetSkip = (run.local() + begin - run.start()) * targetStrides[d];
            Side side = new Side(begin, end - begin, piece.strides()[d], targetStrides[d]);
            boxes.forEach(box -> longer.add(box.with(side, sourceSkip, targetSkip)));
          }
        }
      }
      boxes = longer;
    }
    return boxes;
  }

  private Box with(Side side, long sourceSkip, long targetSkip) {
    List<Side> more = new ArrayList<>(sides);
    more.add(side);
    return new Box(part, value, stored, more, sourceAt + sourceSkip, targetAt + targetSkip);
  }

  long elements() {
    return sides.stream().mapToLong(Side::length).reduce(1, (a, b) -> a * b);
  }

  /**
   * Returns the element of lowest index whose value differs.
   *
   * @param between is called repeatedly by the comparing threads. An exception ends the comparison
   */
  static Optional<Difference> firstDifference(List<Box> boxes, Runnable between) {
    return boxes.stream().flatMap(Box::shares).toList().parallelStream()
        .flatMap(
            share -> {
              between.run();
              return share.box().firstDifference(share.begin(), share.end()).stream();
            })
        .min((a, b) -> Arrays.compare(a.index(), b.index()));
  }

  private Stream<Share> shares() {
    long elements = elements();
    return LongStream.range(0, (elements + SHARE - 1) / SHARE)
        .mapToObj(i -> new Share(this, i * SHARE, Math.min(elements, (i + 1) * SHARE)));
  }

  private Optional<Difference> firstDifference(long begin, long end) {
    List<Side> merged = merged();
    Side row = merged.get(merged.size() - 1);
    for (long at = begin; at < end; ) {
      long source = sourceAt;
      long target = targetAt;
      long rest = at;
      for (int d = merged.size() - 1; d >= 0; d--) {
        Side side = merged.get(d);
        source += rest % side.length() * side.sourceStride();
        target += rest % side.length() * side.targetStride();
        rest /= side.length();
      }
      long count = Math.min(row.length() - at % row.length(), end - at);
      long same =
          value.mismatch(source, row.sourceStride(), stored, target, row.targetStride(), count);
      if (same < count) {
        return Optional.of(
            new Difference(
                part,
                index(at + same),
                stored.bits(target + same * row.targetStride()),
                value.bits(source + same * row.sourceStride())));
      }
      at += count;
    }
    return Optional.empty();
  }

  /**
   * Returns the dimensions, after joining neighbours that together are evenly spaced on both sides.
   */
  private List<Side> merged() {
    List<Side> merged = new ArrayList<>();
    Side last = new Side(0, 1, 1, 1);
    for (Side side : sides) {
      boolean isEven =
          last.length() == 1
              || last.sourceStride() == side.length() * side.sourceStride()
                  && last.targetStride() == side.length() * side.targetStride();
      if (!isEven) {
        merged.add(last);
      }
      long length = isEven ? last.length() * side.length() : side.length();
      last = new Side(0, length, side.sourceStride(), side.targetStride());
    }
    merged.add(last);
    return merged;
  }

  private long[] index(long position) {
    long[] index = new long[sides.size()];
    for (int d = index.length - 1; d >= 0; d--) {
      index[d] = sides.get(d).start() + position % sides.get(d).length();
      position /= sides.get(d).length();
    }
    return index;
  }
}
