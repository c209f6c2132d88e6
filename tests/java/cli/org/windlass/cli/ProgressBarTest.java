// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

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
  @ValueSource(ints = {0, 1, 2, 10, 34, 35, 36, 38, 40, 80})
  void noLineFillsTheTerminal(int columns) {
    assertThat(ProgressBar.line(1, REST, columns).length()).isLessThan(Math.max(columns, 2));
  }
}
