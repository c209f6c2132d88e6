// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.windlass.testing.RandomSeeds;

/** Tiles hold each element once, are no larger than they may be, and have long rows. */
class GridTest {
  private static List<Integer> reversed(int ndim) {
    return IntStream.range(0, ndim).mapToObj(d -> ndim - 1 - d).toList();
  }

  @RandomSeeds(value = 200, inLong = 20_000)
  void tilesHoldEachElementOnce(long seed) {
    Random random = new Random(seed);
    long[] extents = random.longs(random.nextInt(4), 0, 9).toArray();
    List<List<Integer>> orders = new ArrayList<>();
    for (int i = random.nextInt(3); i > 0; i--) {
      List<Integer> order = new ArrayList<>(reversed(extents.length));
      Collections.shuffle(order, random);
      orders.add(order);
    }
    orders.add(reversed(extents.length));
    long most = random.nextInt(100);
    Grid grid = Grid.of(extents, orders, 1 + random.nextInt(9), most);
    Set<List<Long>> seen = new HashSet<>();
    for (long number = 0; number < grid.count(); number++) {
      long[] start = grid.start(number);
      long[] shape = grid.shape(start);
      long elements = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
      assertThat(elements).as("seed %d", seed).isBetween(1L, Math.max(most, 1));
      for (long element = 0; element < elements; element++) {
        List<Long> index = new ArrayList<>();
        long rest = element;
        for (int d = 0; d < shape.length; d++) {
          index.add(start[d] + rest % shape[d]);
          rest /= shape[d];
        }
        assertThat(seen.add(index)).as("seed %d: %s", seed, index).isTrue();
      }
    }
    long all = Arrays.stream(extents).reduce(1, (a, b) -> a * b);
    assertThat(seen).as("seed %d", seed).hasSize((int) all);
  }

  @Test
  void transposedTilesHaveLongRowsInBothFiles() {
    List<List<Integer>> transposed = List.of(List.of(0, 1), List.of(1, 0));
    assertThat(step(1024, 2 << 20, transposed, 16384, 16384)).containsExactly(1024, 2048);
    List<List<Integer>> permuted = List.of(List.of(0, 2, 1), List.of(2, 1, 0));
    assertThat(step(1024, 2 << 20, permuted, 512, 256, 512)).containsExactly(512, 8, 512);
    List<List<Integer>> same = List.of(List.of(1, 0), List.of(1, 0));
    assertThat(step(1024, 300_000, same, 1000, 3000)).containsExactly(100, 3000);
  }

  private static long[] step(
      long least, long most, List<List<Integer>> orders, long... extents) {
    return Grid.of(extents, orders, least, most).step();
  }
}
