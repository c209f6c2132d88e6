// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Formats the comparison as Markdown: ratios, their means, and the cells that do not reach the
 * goal.
 */
final class Table {
  private static final long LARGE_BYTES = 64 << 10;

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
    table.tails();
    table.launches();
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
      Grid.append(
          text,
          "Microseconds, " + ours + " buffers (the floor's)",
          rows.stream().filter(row -> row.contender() == ours).toList(),
          Row::cell,
          row -> Grid.pair(row.times().median(), row.times().floor()));
    }
  }

  /** Appends the 99th percentiles, and counts those that are close to their medians. */
  private void tails() {
    List<Contender> peers =
        List.of(Contender.OPENMPI, Contender.OPENMPI_BOUND, Contender.WAIT).stream()
            .filter(peer -> !measured(peer).isEmpty())
            .toList();
    for (Contender ours : Contender.OURS) {
      String beside = peers.stream().map(peer -> ", " + peer + "'s").collect(Collectors.joining());
      Grid.append(
          text,
          "Microseconds of the 99th percentile, " + ours + " buffers (an empty call's)" + beside,
          measured(ours),
          Row::cell,
          row -> tails(row, peers));
    }
    for (Contender each : Contender.values()) {
      List<Row> cells = measured(each);
      if (!cells.isEmpty()) {
        text.append(
            each + ": the 99th percentile is at most 3 times the median in "
                + cells.stream().filter(Table::hasShortTail).count() + " of " + cells.size()
                + " cells.\n");
      }
    }
    text.append('\n');
  }

  private static boolean hasShortTail(Row row) {
    return row.times().p99() <= 3 * row.times().median();
  }

  private String tails(Row own, List<Contender> peers) {
    StringBuilder all = new StringBuilder(Grid.pair(own.times().p99(), own.times().emptyP99()));
    for (Contender peer : peers) {
      String p99 =
          measured(peer).stream()
              .filter(own::isAtSameCell)
              .map(row -> Grid.significant(row.times().p99()))
              .findFirst()
              .orElse("-");
      all.append(", ").append(p99);
    }
    return all.toString();
  }

  /** Appends the ratio of the time with processes to the time with threads. */
  private void launches() {
    List<Ratio> all = new ArrayList<>();
    for (int buffers = 0; buffers < Contender.PROCESSES.size(); buffers++) {
      Contender threads = Contender.THREADS.get(buffers);
      List<Ratio> own = Ratio.of(rows, Contender.PROCESSES.get(buffers), threads);
      Grid.append(
          text,
          "Processes of threads' time, " + threads + " buffers",
          own,
          Ratio::cell,
          each -> Grid.significant(each.value()));
      all.addAll(own);
    }
    if (!all.isEmpty()) {
      // In some cells, switches between ranks take little of the time.
      Map<Boolean, List<Ratio>> cells =
          all.stream().collect(Collectors.partitioningBy(each -> switchesLittle(each.cell())));
      text.append(
          "Geometric mean: " + Ratio.mean(cells.getOrDefault(true, List.of()))
              + " over cells of 2 ranks or of 64 KiB and more, "
              + Ratio.mean(cells.getOrDefault(false, List.of()))
              + " over the others.\n\n");
    }
  }

  private static boolean switchesLittle(Cell cell) {
    return cell.ranks() == 2 || cell.bytes() >= LARGE_BYTES;
  }

  private List<Row> measured(Contender contender) {
    return Row.measured(rows, contender);
  }

  private void ratios(Contender ours) {
    Grid.append(
        text,
        "Of the best peer's time, " + ours + " buffers (of the floor's)",
        verdicts.stream().filter(each -> each.ours() == ours).toList(),
        Verdict::cell,
        each -> Grid.pair(each.ofPeer(), each.ofFloor()));
  }

  private void sums() {
    List<Verdict> small = verdicts.stream().filter(Verdict::isSmall).toList();
    List<Verdict> beyond = verdicts.stream().filter(each -> !each.holds()).toList();
    text.append(
        "Geometric mean of the ratios to the best peer: " + mean(verdicts) + " over all "
            + verdicts.size() + " cells, " + mean(small) + " over the " + small.size()
            + " of 2 ranks below 4 KiB.\n\n" + (verdicts.size() - beyond.size()) + " of "
            + verdicts.size() + " cells are at most 1.05 of the best peer or, where that is within"
            + " 1.5 of the floor, at most 1.15 of the larger.\n");
    for (Verdict each : beyond) {
      text.append(
          "- " + each.cell() + ", " + each.ours() + ": " + Grid.significant(each.median())
              + " us, " + Grid.significant(each.ofPeer()) + " of " + each.best() + "'s "
              + Grid.significant(each.peer())
              + (Double.isNaN(each.floor()) ? "" : "; floor " + Grid.significant(each.floor()))
              + "\n");
    }
  }

  private static String mean(List<Verdict> verdicts) {
    return Grid.geometricMean(verdicts.stream().mapToDouble(Verdict::ofPeer));
  }
}
