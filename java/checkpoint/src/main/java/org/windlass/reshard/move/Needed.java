// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Represents a box of a move's tensor in its written order, with the parts that a window of the
 * target takes. The box is read once for all ranks that take parts of it.
 */
final class Needed {
  /**
   * Describes a part of the box that a rank takes.
   *
   * @param rank the rank in the target's layout
   * @param start the part's first indices in the move's tensor
   * @param place the part's first indices in the rank's window
   * @param shape the part's extents
   */
  record Cut(int rank, long[] start, long[] place, long[] shape) {}

  private final TensorMove move;
  private final List<Cut> cuts = new ArrayList<>();
  private final long[] start;
  private final long[] end;

  private Needed(TensorMove move) {
    this.move = move;
    this.start = move.shape().clone();
    this.end = new long[start.length];
  }

  /**
   * Returns the boxes of a move's tensor that a window of the target takes. There is one box for
   * each interval of the dimensions that the window cuts, because those of different ranks may be
   * far apart.
   *
   * @param held the part of the target that each rank holds
   */
  static List<Needed> of(
      TensorMove move, Window window, Map<Integer, long[]> shapes, Map<Integer, Runs> held) {
    Map<List<Long>, Needed> boxes = new LinkedHashMap<>();
    long[] extents = move.shape();
    shapes.forEach(
        (rank, shape) -> {
          long[] first = window.start(shape.length);
          for (Runs.Box box : Objects.requireNonNull(held.get(rank)).locally(first, shape)) {
            cut(move, extents, rank, box, first)
                .ifPresent(
                    cut ->
                        boxes
                            .computeIfAbsent(window.key(cut), key -> new Needed(move))
                            .add(cut));
          }
        });
    return List.copyOf(boxes.values());
  }

  /** Returns the part of a target's box that comes from this move. */
  private static Optional<Cut> cut(
      TensorMove move, long[] extents, int rank, Runs.Box box, long[] window) {
    long[] start = box.global().clone();
    long[] place = box.local().clone();
    long[] shape = box.shape().clone();
    Arrays.setAll(place, d -> place[d] - window[d]);
    if (!Arrays.equals(extents, move.target().shape())) {
      int dim = move.dim();
      long low = Math.max(start[dim], move.offset());
      long high = Math.min(start[dim] + shape[dim], move.offset() + extents[dim]);
      if (low >= high) {
        return Optional.empty();
      }
      place[dim] += low - start[dim];
      start[dim] = low - move.offset();
      shape[dim] = high - low;
    }
    return Optional.of(new Cut(rank, start, place, shape));
  }

  private void add(Cut cut) {
    for (int d = 0; d < start.length; d++) {
      start[d] = Math.min(start[d], cut.start()[d]);
      end[d] = Math.max(end[d], cut.start()[d] + cut.shape()[d]);
    }
    cuts.add(cut);
  }

  TensorMove move() {
    return move;
  }

  List<Cut> cuts() {
    return cuts;
  }

  /** Returns the box's first indices. */
  long[] start() {
    return start;
  }

  /** Returns the box's extents. */
  long[] shape() {
    long[] shape = end.clone();
    Arrays.setAll(shape, d -> end[d] - start[d]);
    return shape;
  }

  /** Returns the size of one term of the box in bytes. */
  long bytes() {
    return move.source().dtype().bytesOf(TargetTensor.elements(shape()));
  }
}
