// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** How often it is said that something was dropped. */
class LeaksTest {
  @Test
  void soManyAreToldOfInATimeAndTheOthersCounted() {
    Leaks.Pace pace = new Leaks.Pace(3, Duration.ofSeconds(1));
    long nowNs = System.nanoTime();
    for (int burst = 0; burst < 3; burst++) {
      long unsaid = burst == 0 ? 0 : 7;
      assertThat(pace.next(nowNs)).isEqualTo(unsaid);
      assertThat(pace.next(nowNs + 1)).isZero();
      assertThat(pace.next(nowNs + 999_000_000)).isZero();
      for (int i = 0; i < 7; i++) {
        assertThat(pace.next(nowNs + 999_999_999)).isEqualTo(-1);
      }
      nowNs += 1_000_000_000;
    }
  }
}
