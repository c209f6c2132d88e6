// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.reshard.move.Window;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.ReferenceTensor;

/** The legs of all windows write every element of every target rank once, from where it lies. */
class LegTest {
  private Random random;

  @RandomSeeds(400)
  void everyElementIsWrittenOnceFromWhereItLies(long seed) {
    random = new Random(seed);
    int ndim = 1 + random.nextInt(3);
    int[] shape = new int[ndim];
    int dim = random.nextInt(ndim);
    int offset = random.nextInt(3);
    int[] whole;
    Layout from;
    Layout to;
    do {
      Arrays.setAll(shape, d -> random.nextInt(8) == 0 ? random.nextInt(2) : 1 + random.nextInt(7));
      whole = shape.clone();
      whole[dim] += offset + random.nextInt(3);
      from = layout(ndim, 0);
      to = layout(ndim, 8);
    } while (!ReferenceTensor.fits(shape, from) || !ReferenceTensor.fits(whole, to));
    check(shape, whole, dim, offset, from, to, 1 + random.nextInt(40));
  }

  private Layout layout(int ndim, int firstRank) {
    List<String> sizes = new ArrayList<>();
    List<String> placements = new ArrayList<>();
    for (int m = random.nextInt(3); m >= 0; m--) {
      sizes.add("" + (1 + random.nextInt(2)));
      int dim = random.nextInt(ndim);
      placements.add(
          List.of("R", "S" + dim, "S" + dim + "*2", "SS" + dim + "/2", "SS" + dim + "/3")
              .get(random.nextInt(5)));
    }
    return Layout.parse(String.join("x", sizes) + "@" + firstRank + ":" + String.join(",", placements));
  }

  private static long[] longs(int[] values) {
    return Arrays.stream(values).asLongStream().toArray();
  }

  /** Where the element at one index of each dimension lies in a packed tensor. */
  private static int at(long[] index, List<List<Integer>> held) {
    int at = 0;
    for (int d = 0; d < index.length; d++) {
      assertThat(index[d]).isBetween(0L, held.get(d).size() - 1L);
      at = at * held.get(d).size() + (int) index[d];
    }
    return at;
  }

  private static void check(
      int[] shape, int[] whole, int dim, int offset, Layout from, Layout to, int windowBytes) {
    Map<Integer, int[]> written = new HashMap<>();
    long[] extents = new long[shape.length];
    for (int place = 0; place < to.mesh().size(); place++) {
      int[] local = ReferenceTensor.localShape(ReferenceTensor.indices(to, place, whole));
      Arrays.setAll(extents, d -> Math.max(extents[d], local[d]));
      written.put(to.mesh().rankAtPlace(place),
          new int[Arrays.stream(local).reduce(1, (a, b) -> a * b)]);
    }
    List<Leg> all =
        Arrays.equals(shape, whole)
            ? List.of(Leg.all(from, to, longs(shape)))
            : Leg.part(from, to, longs(shape), dim, offset, whole[dim]);
    for (Window window : Window.cut(extents, 8L * to.mesh().size(), 1, windowBytes)) {
      List<Leg> legs = all;
      for (Window.Side side : window.sides()) {
        List<Leg> within = new ArrayList<>();
        legs.forEach(leg -> within.addAll(leg.within(side.dim(), side.begin(), side.end())));
        legs = within;
      }
      for (Leg leg : legs) {
        for (int rank : leg.to().mesh().ranks()) {
          List<List<Integer>> target = ReferenceTensor.indices(to, to.mesh().placeOf(rank), whole);
          checkLeg(leg, rank, target, window, from, shape, dim, offset, written.get(rank));
        }
      }
    }
    for (int place = 0; place < to.mesh().size(); place++) {
      List<List<Integer>> held = ReferenceTensor.indices(to, place, whole);
      int[] times = written.get(to.mesh().rankAtPlace(place));
      int[] linear = ReferenceTensor.linear(held, whole);
      int inner = 1;
      for (int d = dim + 1; d < whole.length; d++) {
        inner *= whole[d];
      }
      for (int i = 0; i < times.length; i++) {
        int along = linear[i] / inner % whole[dim];
        boolean ours = along >= offset && along < offset + shape[dim];
        assertThat(times[i]).isEqualTo(ours ? 1 : 0);
      }
    }
  }

  private static void checkLeg(
      Leg leg,
      int rank,
      List<List<Integer>> target,
      Window window,
      Layout from,
      int[] shape,
      int dim,
      int offset,
      int[] times) {
    Region region = leg.to().localRegion(leg.shape(), rank);
    long[] extent = region.shape();
    long[] start = window.start(shape.length);
    long[] windowShape =
        window.shape(target.stream().mapToLong(List::size).toArray());
    long[] index = new long[shape.length];
    long elements = Arrays.stream(extent).reduce(1, (a, b) -> a * b);
    for (long element = 0; element < elements; element++) {
      long rest = element;
      long[] inLeg = new long[index.length];
      long[] global = new long[index.length];
      for (int d = index.length - 1; d >= 0; d--) {
        long local = rest % extent[d];
        rest /= extent[d];
        inLeg[d] = global(region, d, local);
        index[d] = leg.targetStart()[d] + local;
        assertThat(index[d] - start[d]).isBetween(0L, windowShape[d] - 1);
        global[d] = target.get(d).get((int) index[d]) - (d == dim ? offset : 0);
      }
      times[at(index, target)]++;
      boolean found = false;
      for (int source : leg.from().mesh().ranks()) {
        Region holds = leg.from().localRegion(leg.shape(), source);
        if (!holds.contains(inLeg)) {
          continue;
        }
        found = true;
        List<List<Integer>> stored =
            ReferenceTensor.indices(from, from.mesh().placeOf(source), shape);
        for (int d = 0; d < index.length; d++) {
          long local = leg.sourceStart()[d] + local(holds, d, inLeg[d]);
          assertThat((long) stored.get(d).get((int) local)).isEqualTo(global[d]);
        }
      }
      assertThat(found).isTrue();
    }
  }

  private static long global(Region region, int dim, long local) {
    for (Region.Interval interval : region.intervals(dim)) {
      if (local < interval.length()) {
        return interval.start() + local;
      }
      local -= interval.length();
    }
    throw new AssertionError(region + " has no local index " + local);
  }

  private static long local(Region region, int dim, long global) {
    long local = 0;
    for (Region.Interval interval : region.intervals(dim)) {
      if (global < interval.end()) {
        return local + global - interval.start();
      }
      local += interval.length();
    }
    throw new AssertionError(region + " does not hold " + global);
  }

  @Test
  void windowsAreStretchesOfAtMostTheBytes() {
    // Rows of 4 x 100 bytes: two windows of rows; a single row in four; columns of whole groups of 8.
    assertThat(Window.cut(new long[] {1, 4, 100}, 8, 1, 200))
        .extracting(Window::sides)
        .containsExactly(
            List.of(new Window.Side(0, 0, 1), new Window.Side(1, 0, 2)),
            List.of(new Window.Side(0, 0, 1), new Window.Side(1, 2, 4)));
    assertThat(Window.cut(new long[] {100}, 4, 8, 13))
        .extracting(Window::sides)
        .startsWith(List.of(new Window.Side(0, 0, 24)), List.of(new Window.Side(0, 24, 48)))
        .hasSize(5);
    assertThat(Window.cut(new long[] {2, 3}, 8, 1, 1)).hasSize(6);
    assertThat(Window.cut(new long[] {5, 0}, 64, 1, 1)).hasSize(1);
    assertThat(Window.cut(new long[0], 64, 1, 1)).hasSize(1);
  }
}
