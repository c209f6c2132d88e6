// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.windlass.error.InvalidArgumentException;

class RegionTest {
  private final Region region = new Region(new long[] {0, 2, 4, 7}, new long[] {3, 5});

  @Test
  void boxesKnowTheirPlaceInThePackedRegion() {
    List<Region.Box> boxes = region.boxes();
    assertThat(boxes).hasSize(2);
    assertThat(boxes.get(1).start()).containsExactly(4, 3);
    assertThat(boxes.get(1).length()).containsExactly(3, 2);
    assertThat(boxes.get(1).packedStart()).containsExactly(2, 0);
    assertThat(new Region().boxes()).hasSize(1);
    assertThat(new Region(new long[] {0, 3}, new long[2]).boxes()).isEmpty();
  }

  @Test
  void countsAndIntervals() {
    assertThat(region.shape()).containsExactly(5, 2);
    assertThat(region.numel()).isEqualTo(10);
    assertThat(region.intervals(0))
        .containsExactly(new Region.Interval(0, 2), new Region.Interval(4, 7));
    assertThat(new Region(new long[] {0, 3}, new long[2]).isEmpty()).isTrue();
    assertThat(new Region().numel()).isEqualTo(1);
    assertThat(region).isEqualTo(new Region(new long[] {0, 2, 4, 7}, new long[] {3, 5}));
    assertThat(region).hasToString("[0,2)+[4,7) x [3,5)");
  }

  @Test
  void boundsAscend() {
    for (long[] bounds : new long[][] {{}, {1}, {2, 1}, {0, 2, 2, 4}, {0, 0, 1, 2}, {-1, 2}}) {
      assertThatThrownBy(() -> new Region(bounds)).isInstanceOf(InvalidArgumentException.class);
    }
  }
}
