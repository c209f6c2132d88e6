// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Formats the comparison as Markdown: ratios, their means, and cells that miss the goal. */
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
      List<Row> own = rows.stream().filter(row -> row.contender() == ours).toList();
      Grid.append(
          text,
          "Microseconds, " + ours + " buffers (the floor's)",
          own.stream().map(Row::cell).toList(),
          own.stream().map(row -> Grid.pair(row.times().median(), row.times().floor())).toList());
    }
  }

  /**
   * Appends 99th percentiles of Windlass and its peers, and counts those that are near their
   * medians.
   */
  private void tails() {
    List<Contender> peers =
        List.of(Contender.OPENMPI, Contender.OPENMPI_BOUND, Contender.WAIT).stream()
            .filter(peer -> !measured(peer).isEmpty())
            .toList();
    for (Contender ours : Contender.OURS) {
      List<Row> own = measured(ours);
      String beside = peers.stream().map(peer -> ", " + peer + "'s").collect(Collectors.joining());
      Grid.append(
          text,
          "Microseconds of the 99th percentile, " + ours + " buffers (an empty call's)" + beside,
          own.stream().map(Row::cell).toList(),
          own.stream().map(row -> tails(row, peers)).toList());
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
              .filter(row -> row.cell().equals(own.cell()))
              .map(row -> Grid.significant(row.times().p99()))
              .findFirst()
              .orElse("-");
      all.append(", ").append(p99);
    }
    return all.toString();
  }

  /** Appends the time with processes as a multiple of the time with threads. */
  private void launches() {
    List<Row> all = new ArrayList<>();
    List<Double> ofThreads = new ArrayList<>();
    for (int buffers = 0; buffers < Contender.PROCESSES.size(); buffers++) {
      Contender threads = Contender.THREADS.get(buffers);
      List<Row> own = new ArrayList<>();
      List<Double> ratios = new ArrayList<>();
      for (Row row : measured(Contender.PROCESSES.get(buffers))) {
        measured(threads).stream()
            .filter(each -> each.cell().equals(row.cell()))
            .forEach(
                each -> {
                  own.add(row);
                  ratios.add(row.times().median() / each.times().median());
                });
      }
      Grid.append(
          text,
          "Processes of threads' time, " + threads + " buffers",
          own.stream().map(Row::cell).toList(),
          ratios.stream().map(Grid::significant).toList());
      all.addAll(own);
      ofThreads.addAll(ratios);
    }
    if (!all.isEmpty()) {
      text.append(
          "Geometric mean: " + mean(all, ofThreads, true)
              + " over cells of 2 ranks or of 64 KiB and more, " + mean(all, ofThreads, false)
              + " over the others.\n\n");
    }
  }

  /**
   * Averages either the cells in which rank switches take little of the time, or the other cells.
   */
  private static String mean(List<Row> rows, List<Double> ratios, boolean switchesLittle) {
    return Grid.geometricMean(
        IntStream.range(0, rows.size())
            .filter(i -> switchesLittle(rows.get(i).cell()) == switchesLittle)
            .mapToDouble(ratios::get));
  }

  private static boolean switchesLittle(Cell cell) {
    return cell.ranks() == 2 || cell.bytes() >= LARGE_BYTES;
  }

  private List<Row> measured(Contender contender) {
    return rows.stream()
        .filter(row -> row.contender() == contender && row.note().isEmpty())
        .toList();
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
