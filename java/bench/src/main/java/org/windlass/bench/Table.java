// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.List;
import java.util.OptionalDouble;

/** The comparison as Markdown: ratios, what they sum up to, and cells beyond the rule. */
final class Table {
  private final List<Row> rows;
  private final List<Verdict> verdicts;
  private final StringBuilder text = new StringBuilder();

  private Table(List<Row> rows) {
    this.rows = rows;
    this.verdicts = Verdict.of(rows);
  }

  static String of(List<Row> rows) {
    Table table = new Table(rows);
    table.times();
    if (!table.verdicts.isEmpty()) {
      for (Contender ours : Contender.OURS) {
        table.ratios(ours);
      }
      table.sums();
    }
    Grid.appendMissing(table.text, rows);
    return table.text.toString();
  }

  private void times() {
    for (Contender ours : Contender.OURS) {
      List<Row> own = rows.stream().filter(row -> row.contender() == ours).toList();
      Grid.append(
          text,
          "Microseconds, " + ours + " buffers (the floor's)",
          own.stream().map(Row::cell).toList(),
          own.stream().map(row -> Grid.pair(row.times().median(), row.times().floor())).toList());
    }
  }

  private void ratios(Contender ours) {
    List<Verdict> own = verdicts.stream().filter(each -> each.ours() == ours).toList();
    Grid.append(
        text,
        "Of the best peer's time, " + ours + " buffers (of the floor's)",
        own.stream().map(Verdict::cell).toList(),
        own.stream().map(each -> Grid.pair(each.ofPeer(), each.ofFloor())).toList());
  }

  private void sums() {
    List<Verdict> small = verdicts.stream().filter(Verdict::isSmall).toList();
    List<Verdict> beyond = verdicts.stream().filter(each -> !each.holds()).toList();
    text.append("Geometric mean of the ratios to the best peer: ")
        .append(mean(verdicts))
        .append(" over all ")
        .append(verdicts.size())
        .append(" cells, ")
        .append(mean(small))
        .append(" over the ")
        .append(small.size())
        .append(" of 2 ranks below 4 KiB.\n\n")
        .append(verdicts.size() - beyond.size())
        .append(" of ")
        .append(verdicts.size())
        .append(
            " cells are at most 1.05 of the best peer or, where that is within 1.5 of the floor, at"
                + " most 1.15 of the larger.\n");
    for (Verdict each : beyond) {
      text.append("- ")
          .append(each.cell())
          .append(", ")
          .append(each.ours())
          .append(": ")
          .append(Grid.significant(each.median()))
          .append(" us, ")
          .append(Grid.significant(each.ofPeer()))
          .append(" of ")
          .append(each.best())
          .append("'s ")
          .append(Grid.significant(each.peer()))
          .append(Double.isNaN(each.floor()) ? "" : "; floor " + Grid.significant(each.floor()))
          .append('\n');
    }
  }

  private static String mean(List<Verdict> verdicts) {
    OptionalDouble mean = Verdict.geometricMean(verdicts);
    return mean.isPresent() ? Grid.significant(mean.getAsDouble()) : "-";
  }
}
