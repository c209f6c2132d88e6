// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.windlass.internal.Shapes;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.testing.DistributionReference;

/**
 * Runs a plan on arrays. Every element of a local tensor is a number made from its global index and
 * from the rank's place in its group of terms, and terms join by a fold that does not commute, so a
 * wrong element, a wrong rank and a wrong order all show. Padding holds what no element does.
 */
final class PlanSimulation {
  private static final long PADDING = -1;

  private final Plan plan;
  private final long[] shape;
  private final int terms;
  private final long[] expected;
  private final Map<Integer, long[]> sources = new HashMap<>();

  PlanSimulation(Plan plan) {
    this.plan = plan;
    this.shape = plan.shape();
    this.terms = DistributionReference.group(plan.from(), plan.from().mesh().rankAtPlace(0)).size();
    this.expected = new long[Math.toIntExact(Shapes.numel(shape))];
    Arrays.setAll(expected, this::expected);
    for (int rank : plan.from().mesh().ranks()) {
      int term = terms == 1 ? 0 : DistributionReference.group(plan.from(), rank).indexOf(rank);
      long[] memory = elements(plan.from(), plan.paddedFrom(), rank);
      Arrays.setAll(memory, i -> memory[i] == PADDING ? PADDING : value(memory[i], term));
      sources.put(rank, memory);
    }
  }

  /** Moves everything into every target rank and compares each element with the reference. */
  void check() {
    for (int rank : plan.to().mesh().ranks()) {
      check(rank, plan.chunksFor(rank));
    }
  }

  private void check(int rank, List<Chunk> chunks) {
    long[] localShape = plan.to().localShape(plan.paddedTo(), rank);
    long[] elements = elements(plan.to(), plan.paddedTo(), rank);
    long[] local = new long[elements.length];
    int[] writes = new int[elements.length];
    for (Chunk chunk : chunks) {
      if (chunk.isTarget()) {
        long moved = 0;
        for (Chunk.Box box : chunk.boxes()) {
          moved += move(chunk, box, localShape, local, writes, elements);
        }
        assertThat(moved).isEqualTo(chunk.route().numel());
        assertThat(chunk.route().region().numel()).isEqualTo(moved);
      }
    }
    for (int i = 0; i < local.length; i++) {
      boolean real = elements[i] != PADDING;
      if (writes[i] != (real ? 1 : 0) || real && local[i] != expected[(int) elements[i]]) {
        throw new AssertionError(
            String.format(
                "rank %d, local element %d, global element %d of %s: written %d times, last %d",
                rank, i, elements[i], plan, writes[i], local[i]));
      }
    }
  }

  private long move(
      Chunk chunk,
      Chunk.Box box,
      long[] localShape,
      long[] local,
      int[] writes,
      long[] elements) {
    int[] targets = offsets(box.targetStart(), box.length(), localShape);
    long[] values = new long[targets.length];
    long[] sourceShape = plan.from().localShape(plan.paddedFrom(), chunk.route().sources().get(0));
    int[] reads = offsets(box.sourceStart(), box.length(), sourceShape);
    for (int source : chunk.route().sources()) {
      long[] memory = sources.get(source);
      for (int i = 0; i < values.length; i++) {
        values[i] = fold(values[i], memory[reads[i]]);
      }
    }
    Region region = chunk.route().region();
    for (int i = 0; i < values.length; i++) {
      local[targets[i]] = values[i];
      writes[targets[i]]++;
      if (!contains(region, coordinates(elements[targets[i]]))) {
        throw new AssertionError(elements[targets[i]] + " is not in " + region + " of " + plan);
      }
    }
    return values.length;
  }

  private long expected(long element) {
    long value = 0;
    for (int term = 0; term < terms; term++) {
      value = fold(value, value(element, term));
    }
    return value;
  }

  private static long fold(long left, long right) {
    return left * 31 + right;
  }

  private static long value(long element, int term) {
    return 1_000_003L * (element + 1) + 7919L * term;
  }

  /**
   * Row-major global numbers of the elements that a rank holds, in local order; {@link #PADDING}
   * for padding.
   */
  private long[] elements(Layout layout, long[] paddedShape, int rank) {
    List<List<Long>> held = DistributionReference.held(layout, rank, paddedShape);
    long[] elements = {0};
    for (int d = 0; d < shape.length; d++) {
      List<Long> indices = held.get(d);
      long[] longer = new long[elements.length * indices.size()];
      for (int i = 0; i < longer.length; i++) {
        long outer = elements[i / indices.size()];
        long index = indices.get(i % indices.size());
        boolean real = outer != PADDING && index < shape[d];
        longer[i] = real ? outer * shape[d] + index : PADDING;
      }
      elements = longer;
    }
    return elements;
  }

  private static boolean contains(Region region, long[] index) {
    return IntStream.range(0, index.length)
        .allMatch(
            d ->
                region.intervals(d).stream()
                    .anyMatch(part -> part.start() <= index[d] && index[d] < part.end()));
  }

  private long[] coordinates(long element) {
    long[] coordinates = new long[shape.length];
    for (int d = shape.length - 1; d >= 0; d--) {
      coordinates[d] = element % shape[d];
      element /= shape[d];
    }
    return coordinates;
  }

  private static int[] offsets(long[] start, long[] length, long[] shape) {
    int[] offsets = {0};
    for (int d = 0; d < shape.length; d++) {
      assertThat(start[d] + length[d]).as(Arrays.toString(shape)).isLessThanOrEqualTo(shape[d]);
      int[] longer = new int[Math.toIntExact(offsets.length * length[d])];
      for (int i = 0; i < longer.length; i++) {
        long within = start[d] + i % length[d];
        longer[i] = Math.toIntExact(offsets[(int) (i / length[d])] * shape[d] + within);
      }
      offsets = longer;
    }
    return offsets;
  }
}
