// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs a plan on arrays. Every element of a local tensor is a number made from its global index and
 * from the rank's place in its group of terms, and terms join by a fold that does not commute, so a
 * wrong element, a wrong rank and a wrong order all show.
 */
final class PlanSimulation {
  private final Plan plan;
  private final long[] shape;
  private final Map<Integer, long[]> sources = new HashMap<>();

  PlanSimulation(Plan plan) {
    this.plan = plan;
    this.shape = plan.shape();
    for (int rank : plan.from().mesh().ranks()) {
      int term = DistributionReference.group(plan.from(), rank).indexOf(rank);
      List<Long> indices = globalIndices(plan.from(), rank);
      sources.put(rank, indices.stream().mapToLong(index -> value(index, term)).toArray());
    }
  }

  /** Moves everything into every target rank and compares each element with the reference. */
  void check() {
    for (int rank : plan.to().mesh().ranks()) {
      check(rank, plan.chunksFor(rank));
    }
  }

  private void check(int rank, List<Chunk> chunks) {
    long[] localShape = localShape(plan.to(), rank);
    List<Long> indices = globalIndices(plan.to(), rank);
    long[] local = new long[indices.size()];
    int[] writes = new int[indices.size()];
    for (Chunk chunk : chunks) {
      if (chunk.isTarget()) {
        long moved = 0;
        for (Chunk.Box box : chunk.boxes()) {
          moved += move(chunk, box, localShape, local, writes, indices);
        }
        assertThat(moved).isEqualTo(chunk.route().numel());
        assertThat(chunk.route().region().numel()).isEqualTo(moved);
      }
    }
    for (int i = 0; i < local.length; i++) {
      assertThat(writes[i]).as("writes of rank %d, element %d of %s", rank, i, plan).isEqualTo(1);
      assertThat(local[i])
          .as("rank %d, element %d of %s", rank, i, plan)
          .isEqualTo(expected(indices.get(i)));
    }
  }

  private long move(
      Chunk chunk,
      Chunk.Box box,
      long[] localShape,
      long[] local,
      int[] writes,
      List<Long> indices) {
    List<Long> targets = offsets(box.targetStart(), box.length(), localShape);
    long[] values = new long[targets.size()];
    for (int source : chunk.route().sources()) {
      long[] memory = sources.get(source);
      List<Long> reads = offsets(box.sourceStart(), box.length(), localShape(plan.from(), source));
      for (int i = 0; i < values.length; i++) {
        values[i] = fold(values[i], memory[Math.toIntExact(reads.get(i))]);
      }
    }
    for (int i = 0; i < values.length; i++) {
      int at = Math.toIntExact(targets.get(i));
      local[at] = values[i];
      writes[at]++;
      assertThat(chunk.route().region().contains(coordinates(indices.get(at)))).isTrue();
    }
    return values.length;
  }

  private long expected(long index) {
    int terms = DistributionReference.group(plan.from(), plan.from().mesh().rankOf(0)).size();
    long value = 0;
    for (int term = 0; term < terms; term++) {
      value = fold(value, value(index, term));
    }
    return value;
  }

  private static long fold(long left, long right) {
    return left * 31 + right;
  }

  private static long value(long index, int term) {
    return 1_000_003L * (index + 1) + 7919L * term;
  }

  private long[] localShape(Layout layout, int rank) {
    return DistributionReference.held(layout, rank, shape).stream().mapToLong(List::size).toArray();
  }

  /** Row-major global element numbers of a rank's local tensor, row-major. */
  private List<Long> globalIndices(Layout layout, int rank) {
    List<Long> numbers = List.of(0L);
    List<List<Long>> held = DistributionReference.held(layout, rank, shape);
    for (int d = 0; d < shape.length; d++) {
      List<Long> longer = new ArrayList<>();
      for (long number : numbers) {
        for (long index : held.get(d)) {
          longer.add(number * shape[d] + index);
        }
      }
      numbers = longer;
    }
    return numbers;
  }

  private long[] coordinates(long number) {
    long[] coordinates = new long[shape.length];
    for (int d = shape.length - 1; d >= 0; d--) {
      coordinates[d] = number % shape[d];
      number /= shape[d];
    }
    return coordinates;
  }

  private static List<Long> offsets(long[] start, long[] length, long[] shape) {
    List<Long> offsets = List.of(0L);
    for (int d = 0; d < shape.length; d++) {
      assertThat(start[d] + length[d]).as(Arrays.toString(shape)).isLessThanOrEqualTo(shape[d]);
      List<Long> longer = new ArrayList<>();
      for (long offset : offsets) {
        for (long i = 0; i < length[d]; i++) {
          longer.add(offset * shape[d] + start[d] + i);
        }
      }
      offsets = longer;
    }
    return offsets;
  }
}
