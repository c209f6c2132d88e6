// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Formats redistributions as Markdown: throughputs, and the ratios of the direct mode's throughput
 * to the other throughputs.
 */
final class RedistributionTable {
  /** Smallest wanted ratio of the direct mode's throughput to that of each contender. */
  private static final Map<Contender, Double> GOALS =
      Map.of(Contender.GATHER_BROADCAST, 4.0, Contender.ALLTOALLW, 8.0);

  private RedistributionTable() {}

  static String of(List<Row> rows) {
    StringBuilder text = new StringBuilder();
    Contender.REDISTRIBUTIONS.forEach(
        each ->
            Grid.append(
                text,
                "GB/s, " + each + " (the floor's)",
                Row.measured(rows, each),
                Row::cell,
                RedistributionTable::throughput));
    Map<Contender, List<Ratio>> others = new LinkedHashMap<>();
    Contender.REDISTRIBUTIONS.stream()
        .filter(each -> each != Contender.DIRECT)
        .forEach(each -> others.put(each, Ratio.of(rows, each, Contender.DIRECT)));
    others.forEach(
        (other, ratios) ->
            Grid.append(
                text,
                "Direct, times " + other,
                ratios,
                Ratio::cell,
                each -> Grid.significant(each.value())));
    others.forEach((other, ratios) -> sum(text, other, ratios));
    Grid.appendMissing(text, rows);
    return text.toString();
  }

  /** Returns the throughput as text: bytes written to all targets per second. */
  private static String throughput(Row row) {
    double kilobytes = Redistribution.parse(row.cell().op()).targetBytes(row.cell().bytes()) / 1e3;
    return Grid.pair(kilobytes / row.times().median(), kilobytes / row.times().floor());
  }

  private static void sum(StringBuilder text, Contender other, List<Ratio> ratios) {
    if (ratios.isEmpty()) {
      return;
    }
    Ratio least = ratios.stream().min(Comparator.comparingDouble(Ratio::value)).orElseThrow();
    text.append(
        "Direct is " + Ratio.mean(ratios)
            + " times as fast as " + other + " in the geometric mean over " + ratios.size()
            + " cells, at least " + Grid.significant(least.value()) + " (" + least.cell() + ")");
    if (GOALS.containsKey(other)) {
      double goal = GOALS.get(other);
      long reached = ratios.stream().filter(each -> each.value() >= goal).count();
      text.append("; in " + reached + " cells " + (int) goal + " or more");
    }
    text.append(".\n");
  }
}
