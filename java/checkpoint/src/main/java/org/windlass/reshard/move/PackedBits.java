// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.error.UnsupportedException;
import org.windlass.plan.Chunk;
import org.windlass.plan.Plan;
import org.windlass.reshard.tensor.Leg;
import org.windlass.reshard.tensor.TensorMove;

/** Moves a leg of a tensor whose elements take less than a byte, as runs of whole bytes. */
public final class PackedBits {
  private static final long MOST_BYTES = 512 << 10;

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
  public static void check(TensorMove move, Leg leg) {
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

  /**
   * Fills the windows of every {@code workers}-th target rank, from rank number {@code worker} on.
   */
  void run(int worker, int workers) {
    List<Integer> ranks = leg.to().mesh().ranks();
    for (int place = worker; place < ranks.size(); place += workers) {
      run(ranks.get(place));
    }
  }

  private void run(int rank) {
    Staged target = targets.get(rank);
    if (target == null) {
      return;
    }
    for (Chunk chunk : plan.chunksFor(rank)) {
      if (chunk.isTarget()) {
        Stored source = Objects.requireNonNull(sources.get(chunk.route().source()));
        for (Chunk.Box box : chunk.boxes()) {
          copy(box, source, move.axes().shape(source.shape()), target);
        }
      }
    }
  }

  private void copy(Chunk.Box box, Stored source, long[] sourceShape, Staged target) {
    long[] length = box.length();
    long[] targetShape = target.shape();
    long[] sourceStart = moved(box.sourceStart(), leg.sourceStart());
    long[] targetStart = moved(box.targetStart(), target.place(leg));
    // Dimensions from `outer` on are contiguous in the source and in the target.
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
      long place = bytes(move, offset(at, targetStart, targetShape));
      for (long done = 0; done < bytes; done += MOST_BYTES) {
        int most = (int) Math.min(MOST_BYTES, bytes - done);
        source.read(begin + done, target.bytes().asByteBuffer(place + done, most));
      }
    } while (next(at, length));
  }

  /** Returns the first indices of a box in the tensor, given those of its leg in {@code by}. */
  private static long[] moved(long[] start, long[] by) {
    long[] moved = start.clone();
    Arrays.setAll(moved, d -> start[d] + by[d]);
    return moved;
  }

  /**
   * Returns the row-major index of the element at {@code start}, moved by {@code at} in the leading
   * dimensions.
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
