// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import org.windlass.bench.data.ByteSize;

/** Formats values of cells as Markdown tables. */
final class Grid {
  private Grid() {}

  /** Appends a table: a line for each operation and number of ranks, a column for each size. */
  static <T> void append(
      StringBuilder text,
      String title,
      List<T> all,
      Function<T, Cell> cell,
      Function<T, String> value) {
    if (all.isEmpty()) {
      return;
    }
    Map<Cell, Map<Long, String>> lines = new LinkedHashMap<>();
    for (T each : all) {
      Cell at = cell.apply(each);
      lines
          .computeIfAbsent(at.group(), group -> new HashMap<>())
          .put(at.bytes(), value.apply(each));
    }
    Set<Long> sizes = new TreeSet<>();
    lines.values().forEach(line -> sizes.addAll(line.keySet()));
    List<String> head = new ArrayList<>(List.of(title, "ranks"));
    sizes.forEach(size -> head.add(size == 0 ? "no bytes" : ByteSize.format(size)));
    text.append(line(head)).append(line(Collections.nCopies(head.size(), "---")));
    lines.forEach(
        (group, values) -> {
          List<String> line = new ArrayList<>(List.of(group.op(), "" + group.ranks()));
          sizes.forEach(size -> line.add(values.getOrDefault(size, "")));
          text.append(line(line));
        });
    text.append('\n');
  }

  private static String line(List<String> cells) {
    return cells.stream().collect(Collectors.joining(" | ", "| ", " |\n"));
  }

  static void appendMissing(StringBuilder text, List<Row> rows) {
    List<Row> missing = rows.stream().filter(row -> !row.note().isEmpty()).toList();
    if (!missing.isEmpty()) {
      text.append("\nNot measured:\n");
      missing.forEach(
          row ->
              text.append("- " + row.cell() + ", " + row.contender() + ": " + row.note() + "\n"));
    }
  }

  /** Formats a value, followed by the value of the floor in parentheses if it is known. */
  static String pair(double value, double floor) {
    if (Double.isNaN(value)) {
      return "-";
    }
    return significant(value) + (Double.isNaN(floor) ? "" : " (" + significant(floor) + ")");
  }

  static String geometricMean(DoubleStream values) {
    double mean = Row.geometricMean(values);
    return Double.isNaN(mean) ? "-" : significant(mean);
  }

  /** Formats a value with two decimal places below 10, one below 100, and none above. */
  static String significant(double value) {
    int places = value < 10 ? 2 : value < 100 ? 1 : 0;
    return String.format(Locale.ROOT, "%." + places + "f", value);
  }
}
