// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.Arrays;
import java.util.Map;
import org.windlass.Chunk;
import org.windlass.Plan;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;

/** A leg of a tensor whose elements take less than a byte, moved as runs of whole bytes. */
final class PackedBits {
  private final TensorMove move;
  private final Leg leg;
  private final Plan plan;
  private final Map<Integer, Stored> sources;
  private final Map<Integer, Staged> targets;

  PackedBits(
      TensorMove move, Leg leg, Map<Integer, Stored> sources, Map<Integer, Staged> targets) {
    this.move = move;
    this.leg = leg;
    this.plan = Plan.of(leg.from(), leg.to(), leg.shape(), move.source().dtype());
    this.sources = sources;
    this.targets = targets;
  }

  /** Refuses a leg that does not begin on a byte, or whose dimensions change their order. */
  static void check(TensorMove move, Leg leg) {
    if (!move.axes().keepOrder()) {
      throw new UnsupportedException(
          move.source().dtype() + " is less than a byte and is not transposed");
    }
    int last = leg.shape().length - 1;
    if (last >= 0) {
      bytes(move, leg.sourceStart()[last]);
      bytes(move, leg.targetStart()[last]);
    }
  }

  /** Writes what {@code rank} gets; each rank on a thread of its own. */
  void run(int rank) {
    Staged target = targets.get(rank);
    if (target == null || !leg.to().mesh().contains(rank)) {
      return;
    }
    for (Chunk chunk : plan.chunksFor(rank)) {
      if (chunk.isTarget()) {
        Stored source = sources.get(chunk.route().source());
        for (Chunk.Box box : chunk.boxes()) {
          copy(box, source.bytes(), move.axes().shape(source.shape()), target);
        }
      }
    }
  }

  private void copy(Chunk.Box box, Tensor source, long[] sourceShape, Staged target) {
    long[] length = box.length();
    long[] targetShape = target.shape();
    long[] sourceStart = moved(box.sourceStart(), leg.sourceStart());
    long[] targetStart = moved(box.targetStart(), target.place(leg));
    // Dimensions from `outer` on lie side by side at both ends.
    int outer = length.length;
    long run = 1;
    boolean full = true;
    while (outer > 0 && full) {
      outer--;
      run *= length[outer];
      full = length[outer] == sourceShape[outer] && length[outer] == targetShape[outer];
    }
    long[] at = new long[outer];
    do {
      long bytes = bytes(move, run);
      long begin = bytes(move, offset(at, sourceStart, sourceShape));
      target
          .bytes()
          .narrow(0, bytes(move, offset(at, targetStart, targetShape)), bytes)
          .copyFrom(source.narrow(0, begin, bytes));
    } while (next(at, length));
  }

  /** The place of a box in the tensor in which the leg begins at {@code by}. */
  private static long[] moved(long[] start, long[] by) {
    long[] moved = start.clone();
    Arrays.setAll(moved, d -> start[d] + by[d]);
    return moved;
  }

  /**
   * The element at {@code start}, moved by {@code at} in the leading dimensions, in row-major
   * order.
   */
  private static long offset(long[] at, long[] start, long[] shape) {
    long offset = 0;
    for (int d = 0; d < shape.length; d++) {
      offset = offset * shape[d] + start[d] + (d < at.length ? at[d] : 0);
    }
    return offset;
  }

  private static long bytes(TensorMove move, long elements) {
    int bits = move.source().dtype().bits();
    if (elements % 8 * bits % 8 != 0) {
      throw new UnsupportedException(
          move.label() + ": " + move.source().dtype()
              + " moves only where every cut falls on a byte");
    }
    return elements / 8 * bits + elements % 8 * bits / 8;
  }

  private static boolean next(long[] at, long[] length) {
    for (int d = at.length - 1; d >= 0; d--) {
      if (++at[d] < length[d]) {
        return true;
      }
      at[d] = 0;
    }
    return false;
  }
}
