// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.Map;
import org.windlass.Chunk;
import org.windlass.Layout;
import org.windlass.Plan;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;

/** A tensor whose elements take less than a byte, moved as runs of whole bytes. */
final class PackedBits {
  private final TensorMove move;
  private final Layout from;
  private final Layout to;
  private final Plan plan;
  private final Map<Integer, Stored> sources;
  private final Map<Integer, Stored> targets;

  PackedBits(
      TensorMove move, Source source, Layout to, Map<Integer, Stored> targets) {
    this.move = move;
    this.from = source.layout();
    this.to = to;
    this.plan = Plan.of(from, to, move.shape(), move.source());
    this.sources = source.stored();
    this.targets = targets;
  }

  /** Writes what {@code rank} gets; each rank on a thread of its own. */
  void run(int rank) {
    Stored target = targets.get(rank);
    if (target == null || target.isEmpty()) {
      return;
    }
    Tensor bytes = target.bytes();
    for (Chunk chunk : plan.chunksFor(rank)) {
      if (chunk.isTarget()) {
        int source = chunk.route().source();
        for (Chunk.Box box : chunk.boxes()) {
          copy(
              box,
              sources.get(source).bytes(),
              from.localShape(move.shape(), source),
              bytes,
              to.localShape(move.shape(), rank));
        }
      }
    }
  }

  private void copy(
      Chunk.Box box, Tensor source, long[] sourceShape, Tensor target, long[] targetShape) {
    long[] length = box.length();
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
      long bytes = bytes(run);
      long begin = bytes(offset(at, box.sourceStart(), sourceShape));
      target
          .narrow(0, bytes(offset(at, box.targetStart(), targetShape)), bytes)
          .copyFrom(source.narrow(0, begin, bytes));
    } while (next(at, length));
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

  private long bytes(long elements) {
    long bits = elements * move.source().bits();
    if (bits % 8 != 0) {
      throw new UnsupportedException(
          "tensor \"" + move.name() + "\": " + move.source()
              + " moves only where every cut falls on a byte");
    }
    return bits / 8;
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
