// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.DType;
import org.windlass.bench.data.Floor;
import org.windlass.reshard.ReshardResult;

/**
 * Measures the floor of a reshard, which is a lower bound of its time: the time to copy or cast the
 * written bytes in memory.
 */
final class ReshardFloor {
  // Bytes of the sample. With its copy, it is larger than most caches.
  private static final long SAMPLE = 16L << 20;
  private static final int ITERATIONS = 3;
  // An amount of bytes below this counts as a copy, so that a single measurement covers all such
  // amounts.
  private static final long LEAST = 1L << 20;

  private ReshardFloor() {}

  static double seconds(List<ReshardResult.Cast> casts) {
    Map<List<DType>, Long> moved = new HashMap<>();
    for (ReshardResult.Cast cast : casts) {
      boolean asBytes = cast.from().code() < 0 || cast.bytes() < LEAST;
      moved.merge(
          asBytes ? List.of(DType.U8, DType.U8) : List.of(cast.from(), cast.to()),
          cast.bytes(),
          Long::sum);
    }
    double seconds = 0;
    for (Map.Entry<List<DType>, Long> entry : moved.entrySet()) {
      DType from = entry.getKey().get(0);
      long bytes = entry.getValue();
      long sample = Math.min(bytes, SAMPLE) / from.bytes() * from.bytes();
      if (sample > 0) {
        seconds +=
            Floor.copyMicros(sample, from, entry.getKey().get(1), ITERATIONS)
                / 1e6
                * ((double) bytes / sample);
      }
    }
    return seconds;
  }
}
