// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import org.windlass.Layout;
import org.windlass.UnsupportedException;
import org.windlass.internal.Native;

/** Ranks of layouts as ranks of a communicator: counted without gaps, in the same order. */
final class RankNumbers {
  private final List<Integer> ranks;

  private RankNumbers(List<Integer> ranks) {
    this.ranks = ranks;
  }

  /** Numbers for every rank of the layouts. */
  static RankNumbers of(Collection<Layout> layouts) {
    TreeSet<Integer> ranks = new TreeSet<>();
    layouts.stream().distinct().forEach(layout -> ranks.addAll(layout.mesh().ranks()));
    if (ranks.size() > Native.WL_MAX_RANKS) {
      throw new UnsupportedException(
          "the layouts have " + ranks.size() + " ranks; a communicator has at most "
              + Native.WL_MAX_RANKS);
    }
    return new RankNumbers(new ArrayList<>(ranks));
  }

  int count() {
    return ranks.size();
  }

  int of(int rank) {
    return java.util.Collections.binarySearch(ranks, rank);
  }

  /** The rank in layouts of a communicator's rank. */
  int rank(int number) {
    return ranks.get(number);
  }

  /** The layout over the communicator's ranks. */
  Layout renumber(Layout layout) {
    int[] renumbered =
        layout.mesh().ranks().stream().mapToInt(Integer::intValue).map(this::of).toArray();
    return new Layout(layout.mesh().ranks(renumbered), layout.placements());
  }
}
