// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.DoubleBinaryOperator;
import java.util.function.ToDoubleFunction;
import java.util.stream.DoubleStream;
import org.windlass.bench.sample.Times;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;

/**
 * A contender's times for a cell over all rounds. It is one line of the CSV file.
 *
 * @param rounds number of rounds with times
 * @param times medians of the rounds' values, with two exceptions: {@code min} is the smallest
 *     value, and {@code floor} is the median over all contenders that measured a floor
 * @param note reason for missing times; otherwise empty
 */
record Row(Cell cell, Contender contender, int rounds, Times times, String note) {
  private static final String HEAD =
      "op,ranks,bytes,side,rounds,median_us,p99_us,min_us,stream_us,empty_us,floor_us,empty_p99_us,"
          + "note";
  private static final int COLUMNS = 13;

  static List<Row> measured(List<Row> rows, Contender contender) {
    return rows.stream()
        .filter(row -> row.contender == contender && row.note.isEmpty())
        .toList();
  }

  boolean isAtSameCell(Row other) {
    return cell.equals(other.cell);
  }

  static Row of(Cell cell, Contender contender, List<Times> rounds, double floor, String note) {
    Times times =
        new Times(
            median(rounds, Times::median),
            median(rounds, Times::p99),
            rounds.stream().mapToDouble(Times::min).min().orElse(Double.NaN),
            median(rounds, Times::stream),
            median(rounds, Times::empty),
            floor,
            median(rounds, Times::emptyP99));
    return new Row(cell, contender, rounds.size(), times, note);
  }

  /**
   * Returns the median, or NaN without times. For an even number of values, returns the mean of the
   * middle two.
   */
  static double median(List<Times> times, ToDoubleFunction<Times> value) {
    return middle(times.stream().mapToDouble(value), (a, b) -> (a + b) / 2);
  }

  /**
   * Returns the median of the numbers; NaN if there are none. For an even number of them, returns
   * the {@code mean} of the middle two.
   */
  static double middle(DoubleStream values, DoubleBinaryOperator mean) {
    double[] sorted = values.filter(each -> !Double.isNaN(each)).sorted().toArray();
    int middle = sorted.length / 2;
    if (sorted.length == 0) {
      return Double.NaN;
    }
    return sorted.length % 2 == 1
        ? sorted[middle]
        : mean.applyAsDouble(sorted[middle - 1], sorted[middle]);
  }

  static double geometricMean(DoubleStream values) {
    return Math.exp(
        values.map(Math::log).filter(each -> !Double.isNaN(each)).average().orElse(Double.NaN));
  }

  static void write(Path file, List<Row> rows) {
    List<String> lines = new ArrayList<>(List.of(HEAD));
    rows.forEach(row -> lines.add(row.toString()));
    try {
      Files.write(file, lines);
    } catch (IOException e) {
      throw new ResourceException("cannot write " + file + ": " + ComparisonOptions.reason(e), e);
    }
  }

  static List<Row> read(Path file) {
    List<String> lines;
    try {
      lines = Files.readAllLines(file);
    } catch (NoSuchFileException e) {
      throw new InvalidArgumentException(file + ": no such file", e);
    } catch (CharacterCodingException e) {
      throw new InvalidArgumentException(file + ": it is no text", e);
    } catch (IOException e) {
      throw new ResourceException(
          "cannot read " + file + ": " + ComparisonOptions.reason(e), e);
    }
    if (lines.isEmpty() || !lines.get(0).equals(HEAD)) {
      throw new InvalidArgumentException(file + ": the first line is not " + HEAD);
    }
    List<Row> rows = new ArrayList<>();
    for (int i = 1; i < lines.size(); i++) {
      try {
        rows.add(parse(lines.get(i)));
      } catch (IllegalArgumentException e) {
        throw new InvalidArgumentException(file + ": line " + (i + 1) + " is no row", e);
      }
    }
    return rows;
  }

  private static Row parse(String line) {
    String[] words = line.split(",", COLUMNS);
    if (words.length != COLUMNS) {
      throw new IllegalArgumentException(COLUMNS + " columns, not " + words.length);
    }
    Cell cell = new Cell(words[0], Integer.parseInt(words[1]), Long.parseLong(words[2]));
    Times times = Times.parse(Arrays.copyOf(words, COLUMNS - 1), 5);
    return new Row(
        cell, Contender.parse(words[3]), Integer.parseInt(words[4]), times, words[COLUMNS - 1]);
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s,%d,%d,%s,%d,%s,%s",
        cell.op(),
        cell.ranks(),
        cell.bytes(),
        contender,
        rounds,
        times.toString().replace(' ', ','),
        note.replaceAll("[,\\s]+", " "));
  }
}
