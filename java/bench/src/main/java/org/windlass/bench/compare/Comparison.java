// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.windlass.bench.sample.Times;

/**
 * Compares contenders at cells, in rounds. In a round, each contender in turn measures an operation
 * at a number of ranks in its own process, for all sizes. The order of contenders changes with each
 * round. {@link Contender#WAIT} runs after Windlass, because it waits for the time of Windlass's
 * median. A cell that a contender cannot measure is not tried again.
 *
 * @param seconds time to measure each size
 * @param deadline how long a contender may take for a line of output
 * @param programs folder of the programs of those peers that are not Java classes
 * @param logs folder that gets each contender's standard error
 */
record Comparison(
    List<Contender> contenders,
    List<Cell> cells,
    int rounds,
    double seconds,
    Duration deadline,
    Path programs,
    Path logs,
    PrintWriter progress) {

  record Entry(Cell cell, Contender contender) {}

  static final class Results {
    final List<Contender> contenders;
    final Map<Entry, List<Times>> times = new LinkedHashMap<>();
    final Map<Entry, String> notes = new LinkedHashMap<>();

    Results(List<Contender> contenders) {
      this.contenders = contenders;
    }

    boolean wants(Entry entry) {
      boolean hasMedian = entry.contender() != Contender.WAIT || median(entry.cell()) > 0;
      return hasMedian && entry.contender().has(entry.cell()) && !notes.containsKey(entry);
    }

    void add(Entry entry, Times measured) {
      times.computeIfAbsent(entry, key -> new ArrayList<>()).add(measured);
    }

    List<Row> rows(List<Cell> cells) {
      List<Row> rows = new ArrayList<>();
      for (Cell cell : cells) {
        List<Times> all = new ArrayList<>();
        contenders.forEach(each -> all.addAll(measured(new Entry(cell, each))));
        double floor = Row.median(all, Times::floor);
        for (Contender each : contenders) {
          Entry entry = new Entry(cell, each);
          List<Times> own = measured(entry);
          String note = notes.getOrDefault(entry, "");
          if (!own.isEmpty() || !note.isEmpty()) {
            rows.add(Row.of(cell, each, own, floor, note));
          }
        }
      }
      return rows;
    }

    /** Returns the text that the entry's command takes for its size. */
    String size(Entry entry) {
      long bytes = entry.cell().bytes();
      return entry.contender() == Contender.WAIT ? bytes + ":" + waitNanos(entry.cell()) : "" + bytes;
    }

    /** Returns Windlass's median of a cell minus that of an empty call, in nanoseconds. */
    private long waitNanos(Cell cell) {
      List<Times> ofRanks = new ArrayList<>();
      times.forEach(
          (entry, all) -> {
            if (isOfWindlass(entry) && entry.cell().ranks() == cell.ranks()) {
              ofRanks.addAll(all);
            }
          });
      double micros = median(cell) - Row.median(ofRanks, Times::empty);
      return Math.max(0, Math.round(micros * 1e3));
    }

    double median(Cell cell) {
      return contenders.stream()
          .map(each -> new Entry(cell, each))
          .filter(Results::isOfWindlass)
          .map(this::measured)
          .filter(all -> !all.isEmpty())
          .mapToDouble(all -> Row.median(all, Times::median))
          .findFirst()
          .orElse(Double.NaN);
    }

    private static boolean isOfWindlass(Entry entry) {
      return Contender.OURS.contains(entry.contender());
    }

    private List<Times> measured(Entry entry) {
      return times.getOrDefault(entry, List.of());
    }
  }

  /** Runs all rounds. After each round, passes all rows to {@code afterRound}. */
  void run(Consumer<List<Row>> afterRound) throws InterruptedException {
    Results results = new Results(contenders);
    Map<Cell, List<Cell>> groups = Cell.grouped(cells);
    long start = System.nanoTime();
    int done = 0;
    for (int round = 0; round < rounds; round++) {
      List<Contender> order = new ArrayList<>(contenders);
      Collections.rotate(order, -round);
      if (order.remove(Contender.WAIT)) {
        order.add(Contender.WAIT);
      }
      for (Map.Entry<Cell, List<Cell>> group : groups.entrySet()) {
        for (Contender each : order) {
          measure(each, group.getValue(), results);
        }
        double minutes = (System.nanoTime() - start) / 60e9;
        done++;
        progress.printf(
            "round %d of %d: %s; %.0f min left%n",
            round + 1,
            rounds,
            group.getKey(),
            minutes / done * (groups.size() * rounds - done));
        progress.flush();
      }
      afterRound.accept(results.rows(cells));
    }
  }

  private void measure(Contender contender, List<Cell> group, Results results)
      throws InterruptedException {
    List<Entry> left = new ArrayList<>();
    group.forEach(cell -> left.add(new Entry(cell, contender)));
    left.removeIf(entry -> !results.wants(entry));
    while (!left.isEmpty()) {
      Cell first = left.get(0).cell();
      List<String> sizes = left.stream().map(results::size).toList();
      List<String> command =
          contender.command(
              programs, logs.resolve("plans"), first.op(), first.ranks(), seconds, sizes);
      try (Child child = new Child(command, deadline, logs.resolve(contender + ".log"))) {
        while (!left.isEmpty()) {
          results.add(left.get(0), parse(contender.said(child.next()), left.get(0).cell()));
          left.remove(0);
        }
      } catch (Child.Stopped e) {
        progress.printf("%s, %s: %s%n", left.get(0).cell(), contender, e.getMessage());
        results.notes.put(left.get(0), e.getMessage());
        left.remove(0);
      }
    }
  }

  private static Times parse(String line, Cell cell) throws Child.Stopped {
    String[] words = line.split(" ");
    try {
      if (Long.parseLong(words[0]) == cell.bytes()) {
        return Times.parse(words, 1);
      }
    } catch (IllegalArgumentException e) {
      // Falls through: no times.
    }
    throw new Child.Stopped("it printed: " + line);
  }
}
