// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.math.BigDecimal;
import java.math.RoundingMode;

/** Formats numbers for JSON with a fixed number of decimal places and without an exponent. */
final class Decimals {
  private Decimals() {}

  static BigDecimal of(double value, int places) {
    return BigDecimal.valueOf(value).setScale(places, RoundingMode.HALF_UP);
  }
}
