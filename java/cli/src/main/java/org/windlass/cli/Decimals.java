// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.math.BigDecimal;
import java.math.RoundingMode;

/** Numbers as JSON shows them: so many places after the point, never an exponent. */
final class Decimals {
  private Decimals() {}

  static BigDecimal of(double value, int places) {
    return BigDecimal.valueOf(value).setScale(places, RoundingMode.HALF_UP);
  }
}
