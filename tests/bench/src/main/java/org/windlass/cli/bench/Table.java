// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.TreeSet;
import java.util.stream.Collectors;

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
    table.missing();
    return table.text.toString();
  }

  private void times() {
    for (Contender ours : Contender.OURS) {
      List<Row> own = rows.stream().filter(row -> row.contender() == ours).toList();
      grid(
          "Microseconds, " + ours + " buffers (the floor's)",
          own.stream().map(Row::cell).toList(),
          own.stream().map(row -> pair(row.times().median(), row.times().floor())).toList());
    }
  }

  private void ratios(Contender ours) {
    List<Verdict> own = verdicts.stream().filter(each -> each.ours() == ours).toList();
    grid(
        "Of the best peer's time, " + ours + " buffers (of the floor's)",
        own.stream().map(Verdict::cell).toList(),
        own.stream().map(each -> pair(each.ofPeer(), each.ofFloor())).toList());
  }

  /** A line for each operation and number of ranks, a column for each size. */
  private void grid(String title, List<Cell> cells, List<String> values) {
    if (cells.isEmpty()) {
      return;
    }
    List<Long> sizes = List.copyOf(new TreeSet<>(cells.stream().map(Cell::bytes).toList()));
    List<String> head = new ArrayList<>(List.of(title, "ranks"));
    sizes.forEach(size -> head.add(size == 0 ? "no bytes" : ByteSize.format(size)));
    line(head);
    line(head.stream().map(each -> "---").toList());
    cells.stream()
        .map(cell -> new Cell(cell.op(), cell.ranks(), 0))
        .distinct()
        .forEach(
            group -> {
              List<String> line =
                  new ArrayList<>(List.of(group.op(), Integer.toString(group.ranks())));
              for (long size : sizes) {
                int at = cells.indexOf(new Cell(group.op(), group.ranks(), size));
                line.add(at < 0 ? "" : values.get(at));
              }
              line(line);
            });
    text.append('\n');
  }

  private void line(List<String> cells) {
    text.append(cells.stream().collect(Collectors.joining(" | ", "| ", " |\n")));
  }

  private static String pair(double value, double floor) {
    if (Double.isNaN(value)) {
      return "-";
    }
    return significant(value) + (Double.isNaN(floor) ? "" : " (" + significant(floor) + ")");
  }

  /** Two places after the point, one from 10 on, none from 100 on. */
  private static String significant(double value) {
    int places = value < 10 ? 2 : value < 100 ? 1 : 0;
    return String.format(Locale.ROOT, "%." + places + "f", value);
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
          .append(significant(each.median()))
          .append(" us, ")
          .append(significant(each.ofPeer()))
          .append(" of ")
          .append(each.best())
          .append("'s ")
          .append(significant(each.peer()))
          .append(Double.isNaN(each.floor()) ? "" : "; floor " + significant(each.floor()))
          .append('\n');
    }
  }

  private static String mean(List<Verdict> verdicts) {
    OptionalDouble mean = Verdict.geometricMean(verdicts);
    return mean.isPresent() ? significant(mean.getAsDouble()) : "-";
  }

  private void missing() {
    List<Row> missing = rows.stream().filter(row -> !row.note().isEmpty()).toList();
    if (!missing.isEmpty()) {
      text.append("\nNot measured:\n");
      missing.forEach(
          row ->
              text.append("- ")
                  .append(row.cell())
                  .append(", ")
                  .append(row.contender())
                  .append(": ")
                  .append(row.note())
                  .append('\n'));
    }
  }
}
