// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Durations as messages have them. */
class DeadlineTest {
  @ParameterizedTest
  @CsvSource({
    "PT0S, 0 s",
    "PT60S, 60 s",
    "PT4.660999999S, 4.66 s",
    "PT16M40S, 1000 s",
    "PT999.999999999S, 999.999 s",
    "PT1S, 1 s",
    "PT0.999999999S, 999.999 ms",
    "PT0.02S, 20 ms",
    "PT0.000001S, 1 us",
    "PT0.000000999S, 999 ns",
    "PT-1.5S, -1.5 s",
    "PT9223372036854775807S, 9223372036854775807 s",
    "PT-9223372036854775808S, -9223372036854775808 s"
  })
  void aTimeHasOneUnit(Duration time, String text) {
    assertThat(Deadline.text(time)).isEqualTo(text);
  }
}
