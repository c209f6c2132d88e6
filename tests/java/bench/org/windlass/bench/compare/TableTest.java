// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.bench.sample.Times;
import org.windlass.error.InvalidArgumentException;

/** From the CSV file to ratios, means and the rule. */
class TableTest {
  private static final String HEAD =
      "op,ranks,bytes,side,rounds,median_us,p99_us,min_us,stream_us,empty_us,floor_us,empty_p99_us,"
          + "note\n";
  private static final String ROWS =
      """
      barrier,2,0,window,5,0.200,0.3,0.1,0.2,0.1,NaN,0.2,
      barrier,2,0,java,5,0.400,0.3,0.1,0.2,0.1,NaN,0.2,
      all-to-all,2,4,window,5,0.300,0.31,0.1,0.2,0.1,0.100,0.2,
      all-to-all,2,4,plain,5,0.600,0.3,0.1,0.2,0.1,0.100,0.2,
      all-to-all,2,4,java,5,0.500,0.3,0.1,0.2,0.1,0.100,0.2,
      all-to-all,2,4,openmpi,5,0.300,0.32,0.1,0.2,0.1,0.100,0.2,
      all-to-all,2,4,gloo,0,NaN,NaN,NaN,NaN,NaN,0.100,NaN,deadline of 60 s
      all-to-all,4,65536,window,5,80.000,90,70,80,0.1,10.000,0.2,
      all-to-all,4,65536,java,5,10.000,90,70,80,0.1,10.000,0.2,
      all-to-all,8,65536,window,5,70.000,90,70,80,0.1,10.000,0.2,
      """;

  @TempDir private Path folder;

  private List<Row> rows(String lines) throws IOException {
    return Row.read(Files.writeString(folder.resolve("in.csv"), HEAD + lines));
  }

  @Test
  void rowsReadBackAsTheyWereWritten() throws IOException {
    List<Row> rows = rows(ROWS);
    Row.write(folder.resolve("out.csv"), rows);
    assertThat(Row.read(folder.resolve("out.csv"))).isEqualTo(rows).hasSize(10);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "barrier,2,0,window,5",
        "barrier,2,0,ship,5,1,1,1,1,1,1,1,",
        "barrier,2,x,java,5,1,1,1,1,1,1,1,",
      })
  void aLineThatIsNoRowIsNamed(String line) {
    assertThatThrownBy(() -> rows(line + "\n"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("line 2");
  }

  @Test
  void aFileOfAnotherKindIsRefused() throws IOException {
    Path file = Files.writeString(folder.resolve("x.csv"), "op,ranks\n");
    assertThatThrownBy(() -> Row.read(file)).isInstanceOf(InvalidArgumentException.class);
  }

  @Test
  void aRowIsTheMedianOfItsRounds() {
    Cell cell = new Cell("all-gather", 2, 4);
    List<Times> rounds =
        List.of(
            new Times(3, 30, 2, 7, 0.1, Double.NaN, 5),
            new Times(1, 10, 0.5, 8, 0.2, Double.NaN, 7),
            new Times(2, 99, 1, 9, 0.3, Double.NaN, 6));
    Times times = Row.of(cell, Contender.JAVA, rounds, 0.25, "").times();
    assertThat(times).isEqualTo(new Times(2, 30, 0.5, 8, 0.2, 0.25, 6));
    assertThat(Row.median(rounds.subList(0, 2), Times::median)).isEqualTo(2);
    assertThat(Row.median(rounds, Times::floor)).isNaN();
  }

  @Test
  void ratiosAreToTheBestPeer() throws IOException {
    List<Verdict> verdicts = Verdict.of(rows(ROWS));
    assertThat(verdicts).extracting(Verdict::ofPeer).containsExactly(0.5, 1.0, 2.0, 8.0);
    assertThat(verdicts.get(1).best()).isEqualTo(Contender.OPENMPI);
    assertThat(verdicts.get(1).ofFloor()).isCloseTo(3, within(1e-9));
    assertThat(mean(verdicts)).isEqualTo("1.68");
    List<Verdict> small = verdicts.stream().filter(Verdict::isSmall).toList();
    assertThat(small).hasSize(3);
    assertThat(mean(small)).isEqualTo("1.00");
    assertThat(mean(List.of())).isEqualTo("-");
  }

  private static String mean(List<Verdict> verdicts) {
    return Grid.geometricMean(verdicts.stream().mapToDouble(Verdict::ofPeer));
  }

  @Test
  void aWaitIsNoPeer() {
    Cell cell = new Cell("all-gather", 2, 4);
    List<Row> rows = new ArrayList<>();
    for (Contender each : List.of(Contender.WINDOW, Contender.JAVA, Contender.WAIT)) {
      double median = each == Contender.WAIT ? 0.5 : 1;
      double p99 = each == Contender.JAVA ? 4 : 1.5;
      Times times = new Times(median, p99, median, median, 0.1, 0.2, 0.1);
      rows.add(Row.of(cell, each, List.of(times), 0.2, ""));
    }
    assertThat(Verdict.of(rows)).extracting(Verdict::best).containsExactly(Contender.JAVA);
    assertThat(Table.of(rows))
        .contains("java: the 99th percentile is at most 3 times the median in 0 of 1 cells.")
        .contains("wait: the 99th percentile is at most 3 times the median in 1 of 1 cells.")
        .contains("window buffers (an empty call's), wait's");
  }

  @ParameterizedTest
  @CsvSource({
    "1.05, 1.0, NaN, true",
    "1.06, 1.0, NaN, false",
    "1.05, 1.0, 0.1, true",
    "1.06, 1.0, 0.6, false",
    "1.15, 1.0, 0.7, true",
    "1.16, 1.0, 0.7, false",
    "2.29, 1.0, 2.0, true",
    "2.31, 1.0, 2.0, false",
  })
  void theRule(double median, double peer, double floor, boolean holds) {
    Cell cell = new Cell("broadcast", 2, 4);
    Verdict verdict =
        new Verdict(cell, Contender.WINDOW, median, Contender.JAVA, peer, floor);
    assertThat(verdict.holds()).isEqualTo(holds);
  }

  @Test
  void theTableSumsUp() throws IOException {
    String table = Table.of(rows(ROWS));
    assertThat(table)
        .contains("| barrier | 2 | 0.50 |")
        .contains("| all-to-all | 2 |  | 1.00 (3.00) |  |")
        .contains("| all-to-all | 4 |  |  | 8.00 (8.00) |")
        .contains("1.68 over all 4 cells, 1.00 over the 3 of 2 ranks below 4 KiB")
        .contains("2 of 4 cells are at most")
        .contains("- all-to-all, 2 ranks, 4, plain: 0.60 us, 2.00 of openmpi's 0.30; floor 0.10")
        .contains("- all-to-all, 2 ranks, 4, gloo: deadline of 60 s")
        .contains("| Microseconds of the 99th percentile, window buffers (an empty call's), openmpi's | ranks |")
        .contains("| all-to-all | 2 |  | 0.31 (0.20), 0.32 |  |")
        .contains("| all-to-all | 4 |  |  | 90.0 (0.20), - |")
        .doesNotContain("NaN");
  }

  @Test
  void shortTailsAreCounted() throws IOException {
    assertThat(
            Table.of(
                rows(
                    """
                    broadcast,2,4,window,5,0.5,1.5,0.1,0.2,0.1,NaN,9,
                    broadcast,2,256,window,5,0.5,1.6,0.1,0.2,0.1,NaN,1.6,
                    broadcast,2,4,openmpi,5,0.5,1.5,0.1,0.2,0.1,NaN,9,
                    """)))
        .contains("window: the 99th percentile is at most 3 times the median in 1 of 2 cells.\n")
        .contains("openmpi: the 99th percentile is at most 3 times the median in 1 of 1 cells.");
  }

  @Test
  void timesAreParsedFromTheirText() {
    Times times = Times.parse("64 3.0 2.0 1.0 0.5 0.1 NaN 0.2".split(" "), 1);
    assertThat(times.median()).isEqualTo(3);
    assertThat(times.emptyP99()).isEqualTo(0.2);
    assertThat(Times.parse(("64 " + times).split(" "), 1)).isEqualTo(times);
    assertThatThrownBy(() -> Times.parse("64 3.0 2.0".split(" "), 1))
        .hasMessageContaining("7 times, not 2");
  }

  @Test
  void withoutPeersThereAreTimesAlone() throws IOException {
    String table = Table.of(rows("barrier,2,0,window,5,0.200,0.3,0.1,0.2,0.1,NaN,0.2,\n"));
    assertThat(table).contains("| barrier | 2 | 0.20 |").doesNotContain("peer");
  }

  @Test
  void theChartHasALineForEachSideAndTheFloor() throws IOException {
    String chart = Chart.of(rows(ROWS), "Microseconds.");
    assertThat(chart.lines().filter(line -> line.startsWith("<polyline"))).hasSize(12);
    assertThat(chart).startsWith("<svg ").endsWith("</svg>\n").doesNotContain("NaN");
  }
}
