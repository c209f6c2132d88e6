// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.windlass.bench.compare.Comparison.Entry;
import org.windlass.bench.compare.Comparison.Results;
import org.windlass.bench.sample.Times;

/** The side `wait` waits as long as Windlass takes. */
class ComparisonTest {
  private static final Cell SMALL = new Cell("all-gather", 2, 4);
  private static final Cell LARGE = new Cell("all-gather", 2, 4096);

  private final Results results = new Results(List.of(Contender.WINDOW, Contender.WAIT));

  private void add(Cell cell, double median, double empty) {
    Times times = new Times(median, 9, median, median, empty, 0.1, 1);
    results.add(new Entry(cell, Contender.WINDOW), times);
  }

  @Test
  void oneNoisyEmptySampleShortensNoWait() {
    add(SMALL, 0.5, 0.2);
    add(SMALL, 0.7, 0.2);
    add(SMALL, 0.6, 0.25);
    add(LARGE, 1.9, 2.6);
    assertThat(results.size(new Entry(SMALL, Contender.WAIT))).isEqualTo("4:375");
    assertThat(results.size(new Entry(LARGE, Contender.WAIT))).isEqualTo("4096:1675");
    assertThat(results.size(new Entry(LARGE, Contender.JAVA))).isEqualTo("4096");
  }

  @Test
  void nobodyWaitsWhereWindlassHasNoTime() {
    assertThat(results.wants(new Entry(SMALL, Contender.WAIT))).isFalse();
    assertThat(results.wants(new Entry(SMALL, Contender.WINDOW))).isTrue();
    add(SMALL, 0.5, 0.2);
    assertThat(results.wants(new Entry(SMALL, Contender.WAIT))).isTrue();
  }
}
