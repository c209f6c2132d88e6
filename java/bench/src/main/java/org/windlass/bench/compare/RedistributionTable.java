// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.bench.sample.Times;

/**
 * Formats redistributions as Markdown: throughputs, and the ratios of the direct mode's throughput
 * to others'.
 */
final class RedistributionTable {
  /** Goal of the direct mode, as a multiple of each contender's throughput. */
  private static final Map<Contender, Double> GOALS =
      Map.of(Contender.GATHER_BROADCAST, 4.0, Contender.ALLTOALLW, 8.0);

  private final List<Row> rows;
  private final StringBuilder text = new StringBuilder();

  private RedistributionTable(List<Row> rows) {
    this.rows = rows.stream().filter(row -> row.note().isEmpty()).toList();
  }

  static String of(List<Row> rows) {
    RedistributionTable table = new RedistributionTable(rows);
    List<Contender> others =
        Contender.REDISTRIBUTIONS.stream().filter(each -> each != Contender.DIRECT).toList();
    Contender.REDISTRIBUTIONS.forEach(table::throughput);
    others.forEach(table::ratios);
    others.forEach(table::sum);
    Grid.appendMissing(table.text, rows);
    return table.text.toString();
  }

  private List<Row> of(Contender contender) {
    return rows.stream().filter(row -> row.contender() == contender).toList();
  }

  /** Appends the throughput of a contender in bytes written to all targets. */
  private void throughput(Contender contender) {
    List<Row> own = of(contender);
    List<String> values = new ArrayList<>();
    for (Row row : own) {
      double kilobytes = Redistribution.parse(row.cell().op()).targetBytes(row.cell().bytes()) / 1e3;
      Times times = row.times();
      values.add(Grid.pair(kilobytes / times.median(), kilobytes / times.floor()));
    }
    Grid.append(
        text,
        "GB/s, " + contender + " (the floor's)",
        own.stream().map(Row::cell).toList(),
        values);
  }

  /** Ratio of the direct mode's throughput to another contender's at a cell. */
  private record Ratio(Cell cell, double value) {}

  private List<Ratio> against(Contender other) {
    List<Ratio> ratios = new ArrayList<>();
    for (Row row : of(other)) {
      Optional<Row> direct =
          of(Contender.DIRECT).stream().filter(each -> each.cell().equals(row.cell())).findFirst();
      direct.ifPresent(
          each ->
              ratios.add(new Ratio(row.cell(), row.times().median() / each.times().median())));
    }
    return ratios;
  }

  private void ratios(Contender other) {
    List<Ratio> ratios = against(other);
    Grid.append(
        text,
        "Direct, times " + other,
        ratios.stream().map(Ratio::cell).toList(),
        ratios.stream().map(each -> Grid.significant(each.value())).toList());
  }

  private void sum(Contender other) {
    List<Ratio> ratios = against(other);
    if (ratios.isEmpty()) {
      return;
    }
    Ratio least = ratios.stream().min(Comparator.comparingDouble(Ratio::value)).orElseThrow();
    text.append(
        "Direct is " + Grid.geometricMean(ratios.stream().mapToDouble(Ratio::value))
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
