// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;

/**
 * Splits a bucket into loads. A load is the part of a bucket that its source stages in one phase of
 * a run.
 */
final class Loads {
  /**
   * Largest number of loads of a bucket. It limits the number of steps if {@code bucketBytes} is
   * small.
   */
  private static final int MOST_LOADS = 4096;

  private Loads() {}

  /** Assigns phases to the loads of one source, so that a target reads one load in a phase. */
  static final class Turns {
    private final Map<Integer, Integer> next = new HashMap<>();

    /** Takes the first phase after those in which {@code targets} read earlier loads. */
    int next(List<Integer> targets) {
      int phase = 0;
      for (int target : targets) {
        phase = Math.max(phase, next.getOrDefault(target, 0));
      }
      for (int target : targets) {
        next.put(target, phase + 1);
      }
      return phase;
    }
  }

  /**
   * Throws if {@code plans} may need more phases than a transfer can have. All ranks throw the same
   * exception.
   */
  static void requireFew(List<Plan> plans) {
    long loads = 0; // most loads that a rank makes for another rank
    for (Plan plan : plans) {
      long most = plan.options().bucketBytes();
      loads += Math.min(MOST_LOADS, (plan.mostRouteBytes() - 1) / most + 1);
      if (loads >= Native.WL_MAX_PHASES) {
        throw new InvalidArgumentException(
            "with bucketBytes of " + most + ", " + plans.size() + " tensors may need "
                + Native.WL_MAX_PHASES + " phases or more, and a transfer has fewer: use larger"
                + " buckets, or several transfers");
      }
    }
  }

  /** Returns the largest size of a load, in bytes, for data of {@code bytes} bytes. */
  static long mostBytes(long bytes, Plan plan) {
    return Math.max(plan.options().bucketBytes(), (bytes - 1) / MOST_LOADS + 1);
  }

  /**
   * Splits a bucket into loads of at most {@link #mostBytes}, or of one element if that is larger.
   * Wider elements come first, so that all elements are aligned without gaps.
   *
   * @param plans the plans of the transfer
   */
  static List<List<Piece>> of(Bucket bucket, List<Plan> plans) {
    long most = mostBytes(bucket.bytes(), plans.get(bucket.entries().get(0).tensor()));
    List<Piece> pieces = new ArrayList<>();
    for (Bucket.Entry entry : bucket.entries()) {
      Route route = entry.route();
      for (Chunk.Box box : route.boxes()) {
        Piece.cut(box, Math.max(1, most / route.wire().bytes()))
            .forEach(part -> pieces.add(new Piece(entry.tensor(), route, part)));
      }
    }
    pieces.sort(Comparator.comparingInt(piece -> -piece.wire().bytes()));
    List<List<Piece>> loads = new ArrayList<>();
    long bytes = most;
    for (Piece piece : pieces) {
      long more = piece.bytes();
      if (loads.isEmpty() || bytes > most - more) {
        loads.add(new ArrayList<>());
        bytes = 0;
      }
      loads.get(loads.size() - 1).add(piece);
      bytes += more;
    }
    return loads;
  }
}
