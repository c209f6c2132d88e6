// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.List;

/** The ratio of two contenders' medians at a cell. */
record Ratio(Cell cell, double value) {
  static List<Ratio> of(List<Row> rows, Contender contender, Contender other) {
    return Row.measured(rows, contender).stream()
        .flatMap(row -> Row.measured(rows, other).stream().filter(row::isAtSameCell)
            .map(base -> new Ratio(row.cell(), row.times().median() / base.times().median())))
        .toList();
  }

  static String mean(List<Ratio> ratios) {
    return Grid.geometricMean(ratios.stream().mapToDouble(Ratio::value));
  }
}
