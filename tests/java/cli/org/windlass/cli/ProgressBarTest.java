// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ProgressBarTest {
  private static final String REST = " 50 %  0.50 of 1.00 GB  1.00 GB/s ";

  @ParameterizedTest
  @CsvSource({"200, 20, 20", "79, 20, 20", "60, 11, 11", "42, 2, 2", "41, 1, 2"})
  void theBarTakesTheRoomThatThereIs(int columns, int full, int empty) {
    String bar = "[" + "#".repeat(full) + ".".repeat(empty) + "] ";
    assertThat(ProgressBar.line(0.5, REST, columns)).isEqualTo(bar + REST);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 4000000000, 2, '0 %  0 B of 4.00 GB'",
    "1000000000, 4000000000, 2, '25 %  1.00 GB of 4.00 GB  500 MB/s  6 s left'",
    "1000000000, 401000000000, 2, '0 %  1.00 GB of 401 GB  500 MB/s  13 min left'",
    "12345, 9000000000000, 1, '0 %  12.3 kB of 9.00 TB  12.3 kB/s  202511 h left'",
    "4000000000, 4000000000, 8, '100 %  4.00 GB of 4.00 GB  500 MB/s'",
    "0, 0, 0, '100 %  0 B of 0 B'"
  })
  void theSpeedAndTheTimeLeftAreToldOnceTheyAreKnown(long moved, long total, long seconds, String text) {
    assertThat(ProgressBar.rest(moved, total, seconds * 1_000_000_000L).strip()).isEqualTo(text);
  }

  @Test
  void aSpeedOverAlmostNoTimeIsNotTold() {
    long half = 1_000_000_000;
    assertThat(ProgressBar.rest(half, 2 * half, 199_000_000).strip())
        .isEqualTo("50 %  1.00 GB of 2.00 GB");
    assertThat(ProgressBar.rest(half, 2 * half, 200_000_000).strip())
        .isEqualTo("50 %  1.00 GB of 2.00 GB  5.00 GB/s");
  }

  @ParameterizedTest
  @CsvSource({"0, 0 s", "3e-6, 3.00 us", "4.5e-4, 0.45 ms", "0.0996, 99.60 ms", "0.1, 0.10 s", "75, 75.00 s"})
  void aShortTimeIsNotShownAsZero(double seconds, String text) {
    assertThat(ReshardCommand.time(seconds)).isEqualTo(text);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 10, 34, 35, 36, 38, 40, 80})
  void noLineFillsTheTerminal(int columns) {
    assertThat(ProgressBar.line(1, REST, columns).length()).isLessThan(Math.max(columns, 2));
  }
}
