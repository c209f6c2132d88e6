// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.windlass.bench.data.ByteSize;

/**
 * Draws the comparison as SVG. Each {@link Cell#family} has a row of panels, and each {@link
 * Cell#panel} has one panel. A panel plots time over size on logarithmic axes, with a line for each
 * contender and one for the physical floor, which is the lower bound of the time. Barriers have one
 * panel, which plots time over ranks.
 */
final class Chart {
  private static final int PANEL_WIDTH = 250;
  private static final int PANEL_HEIGHT = 190;
  private static final int LEFT = 52;
  private static final int RIGHT = 12;
  private static final int TOP = 26;
  private static final int BOTTOM = 24;
  private static final int LEGEND = 44;
  private static final String FLOOR_COLOUR = "#222222";
  private static final String DASHES = " stroke-dasharray=\"3 3\"";
  private static final MathContext ONE_DIGIT = new MathContext(1);

  private final StringBuilder svg = new StringBuilder();

  private Chart() {}

  /** A line of a panel. Its points are in ascending order of x. */
  private record Line(String colour, boolean dashed, double[] x, double[] y) {
    static Line of(
        String colour,
        boolean dashed,
        List<Row> rows,
        ToLongFunction<Cell> x,
        ToDoubleFunction<Row> y) {
      List<Row> there = rows.stream().filter(row -> y.applyAsDouble(row) > 0).toList();
      return new Line(
          colour,
          dashed,
          there.stream().mapToDouble(row -> x.applyAsLong(row.cell())).toArray(),
          there.stream().mapToDouble(y).toArray());
    }
  }

  static String of(List<Row> rows, String about) {
    List<Row> measured = rows.stream().filter(row -> row.note().isEmpty()).toList();
    Map<String, List<Row>> families = by(row -> row.cell().family(), measured);
    Chart chart = new Chart();
    int columns = 1;
    int top = LEGEND;
    for (List<Row> family : families.values()) {
      columns = Math.max(columns, chart.family(family, top));
      top += PANEL_HEIGHT;
    }
    int width = Math.max(columns * PANEL_WIDTH, 5 * PANEL_WIDTH / 2);
    return format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
            + " font-family=\"sans-serif\" font-size=\"10\" fill=\"#222222\">%n"
            + "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>%n%s%s</svg>%n",
        width, top, legend(measured, about), chart.svg);
  }

  private static <K> Map<K, List<Row>> by(Function<Row, K> key, List<Row> rows) {
    return rows.stream()
        .collect(Collectors.groupingBy(key, LinkedHashMap::new, Collectors.toList()));
  }

  private static String legend(List<Row> rows, String about) {
    StringBuilder legend = new StringBuilder();
    List<Contender> contenders = rows.stream().map(Row::contender).distinct().sorted().toList();
    int x = LEFT;
    for (Contender each : contenders) {
      legend.append(key(x, colour(each), "", each.toString()));
      x += 48 + 6 * each.toString().length();
    }
    legend.append(key(x, FLOOR_COLOUR, DASHES, "floor"));
    return legend + text(LEFT, 34, "start", about);
  }

  private static String key(int x, String colour, String dashes, String name) {
    return format(
            "<line x1=\"%d\" y1=\"14\" x2=\"%d\" y2=\"14\" stroke=\"%s\" stroke-width=\"2\"%s/>%n",
            x, x + 18, colour, dashes)
        + text(x + 22, 18, "start", name);
  }

  private static String colour(Contender contender) {
    return switch (contender) {
      case WINDOW, DIRECT -> "#0b5fd0";
      case PLAIN, STAGED -> "#66b2ff";
      case WINDOW_PROCESSES -> "#6a1fb0";
      case PLAIN_PROCESSES -> "#b98ae0";
      case JAVA, GATHER_BROADCAST -> "#e06c00";
      case OPENMPI, ALLTOALLW -> "#2a9d57";
      case OPENMPI_BOUND -> "#8fd3a5";
      case MPICH -> "#9b3fb5";
      case GLOO, WAIT -> "#999999";
    };
  }

  /** Draws the panels of a family, which share a vertical axis. Returns the number of panels. */
  private int family(List<Row> rows, int top) {
    Map<String, List<Row>> panels = by(row -> row.cell().panel(), rows);
    boolean barrier = rows.get(0).cell().op().equals(Cell.BARRIER);
    ToLongFunction<Cell> x = barrier ? Cell::ranks : Cell::bytes;
    double[] times =
        rows.stream()
            .flatMapToDouble(row -> DoubleStream.of(row.times().median(), row.times().floor()))
            .filter(time -> time > 0)
            .toArray();
    double[] across = rows.stream().mapToDouble(row -> x.applyAsLong(row.cell())).toArray();
    int left = 0;
    for (Map.Entry<String, List<Row>> panel : panels.entrySet()) {
      new Panel(left, top, across, times).draw(panel.getKey(), lines(panel.getValue(), x));
      left += PANEL_WIDTH;
    }
    return panels.size();
  }

  private static List<Line> lines(List<Row> rows, ToLongFunction<Cell> x) {
    List<Line> lines = new ArrayList<>();
    for (Contender each : rows.stream().map(Row::contender).distinct().sorted().toList()) {
      List<Row> own = rows.stream().filter(row -> row.contender() == each).toList();
      if (lines.isEmpty()) {
        lines.add(Line.of(FLOOR_COLOUR, true, own, x, row -> row.times().floor()));
      }
      lines.add(Line.of(colour(each), false, own, x, row -> row.times().median()));
    }
    return lines;
  }

  private static String text(double x, double y, String anchor, String words) {
    return format(
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>%n", x, y, anchor, words);
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }

  private final class Panel {
    private final int left;
    private final int top;
    private final double[] across;
    private final double lowX;
    private final double highX;
    private final double lowY;
    private final double highY;

    Panel(int left, int top, double[] across, double[] times) {
      this.left = left;
      this.top = top;
      this.across = DoubleStream.of(across).distinct().sorted().toArray();
      this.lowX = this.across[0];
      this.highX = Math.max(this.across[this.across.length - 1], 2 * lowX);
      this.lowY = Math.pow(10, Math.floor(Math.log10(DoubleStream.of(times).min().orElse(1))));
      double most = DoubleStream.of(times).max().orElse(1);
      this.highY = Math.max(Math.pow(10, Math.ceil(Math.log10(most))), 10 * lowY);
    }

    private double x(double value) {
      double share = Math.log(value / lowX) / Math.log(highX / lowX);
      return left + LEFT + share * (PANEL_WIDTH - LEFT - RIGHT);
    }

    private double y(double value) {
      double share = Math.log(value / lowY) / Math.log(highY / lowY);
      return top + PANEL_HEIGHT - BOTTOM - share * (PANEL_HEIGHT - TOP - BOTTOM);
    }

    void draw(String title, List<Line> lines) {
      svg.append("<g font-weight=\"bold\">")
          .append(text(left + LEFT, top + TOP - 8, "start", title))
          .append("</g>\n");
      for (double decade = lowY; decade <= highY * 1.01; decade *= 10) {
        grid(x(lowX), y(decade), x(highX), y(decade));
        String label = BigDecimal.valueOf(decade).round(ONE_DIGIT).toPlainString();
        svg.append(text(x(lowX) - 5, y(decade) + 3, "end", label));
      }
      for (double value : across) {
        grid(x(value), y(lowY), x(value), y(highY));
        svg.append(text(x(value), y(lowY) + 13, "middle", ByteSize.format((long) value)));
      }
      lines.stream().filter(line -> line.x().length > 0).forEach(this::draw);
    }

    private void grid(double x1, double y1, double x2, double y2) {
      svg.append(
          format("<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#e4e4e4\"/>%n", x1, y1, x2, y2));
    }

    private void draw(Line line) {
      String points =
          IntStream.range(0, line.x().length)
              .mapToObj(i -> format("%.1f,%.1f", x(line.x()[i]), y(line.y()[i])))
              .collect(Collectors.joining(" "));
      svg.append(
          format(
              "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s/>%n",
              points, line.colour(), line.dashed() ? DASHES : ""));
    }
  }
}
