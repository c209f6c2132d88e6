// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class StampsTest {
  @Test
  void aSampleRunsFromTheLastReadyToTheLastLeave() {
    Stamps stamps = new Stamps(3, 2);
    stamps.set(0, 0, 100, 190);
    stamps.set(1, 0, 150, 210);
    stamps.set(2, 0, 120, 180);
    stamps.set(0, 1, 300, 320);
    stamps.set(1, 1, 280, 310);
    stamps.set(2, 1, 290, 340);
    assertThat(stamps.sample(0)).isEqualTo(60);
    assertThat(stamps.sample(1)).isEqualTo(40);
    assertThat(Stamps.sortedSamples(List.of(stamps, stamps))).containsExactly(40, 40, 60, 60);
  }

  @Test
  void aClockThatWrapsGivesTheSameSamples() {
    Stamps stamps = new Stamps(2, 1);
    stamps.set(0, 0, Long.MAX_VALUE - 5, Long.MAX_VALUE + 20);
    stamps.set(1, 0, Long.MAX_VALUE, Long.MAX_VALUE + 30);
    assertThat(stamps.sample(0)).isEqualTo(30);
  }

  @Test
  void quantilesAreExactSamples() {
    long[] sorted = new long[100];
    for (int i = 0; i < 100; i++) {
      sorted[i] = i + 1;
    }
    assertThat(Stamps.quantile(sorted, 0.5)).isEqualTo(50);
    assertThat(Stamps.quantile(sorted, 0.99)).isEqualTo(99);
    assertThat(Stamps.quantile(sorted, 1)).isEqualTo(100);
    assertThat(Stamps.quantile(sorted, 0)).isEqualTo(1);
    assertThat(Stamps.quantile(new long[] {7}, 0.99)).isEqualTo(7);
  }
}
