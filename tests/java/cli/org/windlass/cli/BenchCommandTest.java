// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.bench.sample.BenchResult;
import org.windlass.bench.workload.RedistributeWorkload;
import org.windlass.cli.documents.Pages;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;
import picocli.CommandLine;

@Timeout(120)
class BenchCommandTest {
  private static final String[] FIELDS = {
    "op",
    "target",
    "launch",
    "algorithm",
    "buffers",
    "ranks",
    "bytes",
    "dtype",
    "iterations",
    "median_us",
    "p99_us",
    "min_us",
    "stream_us",
    "empty_us",
    "algbw_GBps",
    "verified",
  };

  private static String ranAlgorithm(String op, String asked) {
    if (!asked.equals("auto")) {
      return asked;
    }
    return switch (op) {
      case "all-to-all" -> "push";
      case "broadcast" -> "staged";
      default -> "auto";
    };
  }

  @ParameterizedTest
  @CsvSource({
    "all-to-all, auto, window, 2",
    "all-to-all, push, plain, 3",
    "all-to-all, pull, window, 3",
    "all-to-all, push, window, 1",
    "broadcast, auto, window, 3",
    "broadcast, staged, plain, 2",
    "all-gather, auto, window, 3",
    "all-gather, auto, plain, 1",
    "reduce-scatter, auto, window, 2",
    "reduce-scatter, auto, plain, 3",
    "all-reduce, two-phase, plain, 1",
    "all-reduce, one-phase, plain, 3",
    "all-reduce, two-phase, window, 3",
    "all-reduce, ring, window, 3",
    "all-reduce, bidirectional-ring, plain, 3",
    "put, auto, window, 2",
    "put, auto, plain, 5",
    "send-receive, auto, window, 2",
    "send-receive, auto, plain, 5",
    "accumulate, auto, window, 3",
    "accumulate, auto, plain, 2",
    "cast, auto, plain, 2",
  })
  void aLineForEachSize(String op, String algorithm, String buffers, int ranks) throws IOException {
    List<Map<String, Object>> lines =
        bench(
            op,
            "--ranks",
            "" + ranks,
            "--bytes",
            "4,4K,36K",
            "--algorithm",
            algorithm,
            "--buffers",
            buffers,
            "--seconds",
            "0.01");
    assertThat(lines).hasSize(3);
    long[] sizes = {4, 4096, 36 * 1024};
    for (int i = 0; i < 3; i++) {
      Map<String, Object> line = lines.get(i);
      checkTimes(line);
      assertThat(line)
          .containsEntry("op", op)
          .containsEntry("target", "sim")
          .containsEntry("launch", "threads")
          .containsEntry("algorithm", ranAlgorithm(op, algorithm))
          .containsEntry("buffers", buffers)
          .containsEntry("ranks", (double) ranks)
          .containsEntry("bytes", (double) sizes[i])
          .containsEntry("dtype", "f32");
      assertThat(number(line, "floor_us")).isPositive();
      long received =
          switch (op) {
            case "all-to-all", "all-gather", "reduce-scatter", "accumulate" -> (ranks - 1) * sizes[i];
            case "broadcast", "put", "send-receive" -> sizes[i];
            case "all-reduce" -> 2 * (ranks - 1) * sizes[i] / ranks;
            default -> 0;
          };
      double expected = received / (number(line, "median_us") * 1e3);
      assertThat(number(line, "algbw_GBps"))
          .isCloseTo(expected, org.assertj.core.data.Offset.offset(0.01 + 0.1 * expected));
    }
  }

  @Test
  void anAllReduceRunsTwoPhaseByItself() throws IOException {
    Map<String, Object> line = bench("all-reduce", "--bytes", "64", "--seconds", "0.01").get(0);
    checkTimes(line);
    assertThat(line).containsEntry("algorithm", "two-phase");
  }

  @ParameterizedTest
  @CsvSource({
    "all-gather, f8e4m3, auto",
    "all-gather, c64, auto",
    "reduce-scatter, f8e4m3, auto",
    "reduce-scatter, i8, auto",
    "reduce-scatter, f64, auto",
    "all-reduce, bf16, auto",
    "all-reduce, f8e5m2, one-phase",
    "all-reduce, f8e4m3, ring",
    "all-reduce, u16, bidirectional-ring",
  })
  void aFloorSumsF32Alone(String op, String dtype, String algorithm) throws IOException {
    Map<String, Object> line =
        bench(op, "--dtype", dtype, "--algorithm", algorithm, "--bytes", "1K", "--seconds", "0.01")
            .get(0);
    checkTimes(line);
    assertThat(line.containsKey("floor_us")).isEqualTo(op.equals("all-gather"));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 5})
  void aBarrierHasNoFloor(int ranks) throws IOException {
    Map<String, Object> line = bench("barrier", "--ranks", "" + ranks, "--seconds", "0.01").get(0);
    checkTimes(line);
    assertThat(line).doesNotContainKey("floor_us").containsEntry("bytes", 0.0);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "2:S0 2:S1 f32 f32 direct",
        "2x2:P,S0 1x3@4:R,S1 f32 bf16 staged",
        "2x2:P:avg,S0 3@[1,4,0]:S0 bf16 bf16 gather-broadcast",
        "3:P:product 2:S0 i16 i16 direct",
        "2:P:max 2:S0 bool bool staged",
        "2:S0 2@0:S1 c64 c64 direct",
      })
  void aRedistributionNamesItsLayouts(String row) throws IOException {
    String[] cells = row.split(" ");
    Map<String, Object> line =
        bench(
                "redistribute",
                "--from",
                cells[0],
                "--to",
                cells[1],
                "--shape",
                "65x33",
                "--dtype",
                cells[2],
                "--wire",
                cells[3],
                "--mode",
                cells[4],
                "--seconds",
                "0.01")
            .get(0);
    checkTimes(line);
    assertThat(line)
        .containsEntry("from", cells[0])
        .containsEntry("wire", cells[3])
        .containsEntry("mode", cells[4])
        .containsEntry("shape", "65x33");
    assertThat(number(line, "floor_us")).isPositive();
  }

  @Test
  void aRankReceivesWhatItReadsToReduce() {
    assertThat(received("2:S0", "2@0:S1")).isEqualTo(16);
    assertThat(received("2:P", "2@0:S1")).isEqualTo(32);
    assertThat(received("2x2:P,S0", "1@4:R")).isEqualTo(128);
  }

  private static long received(String from, String to) {
    return new RedistributeWorkload(
            TensorSpec.of("bench", DType.F32, Layout.parse(from), 4, 4),
            TensorSpec.of("bench", DType.F32, Layout.parse(to), 4, 4),
            DType.F32,
            TransferMode.DIRECT,
            false,
            Duration.ofSeconds(1))
        .receivedBytes();
  }

  @Test
  void rawStampsGoToAFile(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("ops.csv");
    Map<String, Object> line =
        bench("barrier", "--ranks", "2", "--seconds", "0.01", "--ops-csv", file.toString()).get(0);
    List<String> rows = Files.readAllLines(file);
    assertThat(rows.get(0)).isEqualTo("op,bytes,batch,iteration,rank,ready_ns,leave_ns");
    assertThat(rows).hasSize(1 + 2 * (int) number(line, "iterations"));
    String[] cells = rows.get(1).split(",");
    assertThat(Long.parseLong(cells[6])).isGreaterThan(Long.parseLong(cells[5]));
    assertThatThrownBy(() -> bench("barrier", "--ops-csv", folder + "/none/ops.csv"))
        .isInstanceOf(InvalidArgumentException.class);
  }

  @Test
  void stampsOfABenchThatFailsReplaceNothing(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("ops.csv"), "those of before");
    assertThatThrownBy(
            () -> run("barrier", "--ranks", "8", "--deadline", "1e-9", "--ops-csv", "" + file))
        .isInstanceOf(DeadlineExceededException.class);
    assertThat(file).hasContent("those of before");
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).containsExactly(file);
    }
  }

  @Test
  void aTableForPeople() {
    String[] rows = run("all-to-all", "--bytes", "64,64K", "--seconds", "0.01").split("\n");
    assertThat(rows).hasSize(4);
    assertThat(rows[0]).isEqualTo("all-to-all, 2 threads, sim, f32 in window; times in us");
    assertThat(rows[1]).contains("median", "/floor");
    assertThat(rows[3]).contains("64K");
    assertThat(rows).allSatisfy(row -> assertThat(row).hasSizeLessThanOrEqualTo(80));
  }

  @Test
  void aDispatchStandsBesideTheSameWorkByAllToAllV() {
    String[] sizes = "--tokens 40 --hidden 96 --top-k 3 --experts 4 --seconds 0.02".split(" ");
    String[] arguments = new String[sizes.length + 2];
    System.arraycopy(sizes, 0, arguments, 2, sizes.length);
    arguments[0] = "dispatch-combine";
    arguments[1] = "--json";
    String[] lines = run(arguments).split("\n");
    assertThat(lines).hasSize(2);
    assertThat(lines[0])
        .contains("\"op\":\"dispatch-combine\"", "\"bytes\":7680", "\"dtype\":\"bf16\"")
        .contains("\"tokens\":40", "\"hidden\":96", "\"top_k\":3", "\"experts\":4")
        .contains("\"floor_us\":", "\"dispatch_moving_us\":", "\"combine_waiting_us\":")
        .contains("\"verified\":true")
        .doesNotContain("\"by\"");
    assertThat(lines[1]).contains("\"by\":\"all-to-all-v\"", "\"verified\":true");
  }

  @Test
  void tooManyTokensAreRefusedByThatName() {
    assertThatThrownBy(() -> run("dispatch-combine", "--tokens", "1000000"))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("--tokens: a buffer of ");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "reduce-scatter --dtype bool",
        "all-reduce --dtype c64 --bytes 64",
        "all-reduce --dtype f8e5m2 --algorithm ring",
        "all-reduce --dtype bf16 --algorithm bidirectional-ring --ranks 40",
        "barrier --target cuda",
        "all-reduce --tune-grids grids",
        "cast --dtype i32 --wire f32",
        "all-to-all --dtype f4",
      })
  void refusesWhatIsNotHere(String arguments) {
    assertThatThrownBy(() -> run(arguments.split(" "))).isInstanceOf(UnsupportedException.class);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "scatter",
        "barrier --ranks 0",
        "put --ranks 1",
        "put --algorithm push",
        "put --tune-grids grids",
        "all-to-all --ranks -2",
        "barrier --deadline 0",
        "barrier --seconds 0",
        "barrier --launch ships",
        "all-to-all --bytes 5",
        "all-to-all --bytes x",
        "all-to-all --algorithm staged",
        "broadcast --algorithm push",
        "all-gather --algorithm push",
        "reduce-scatter --algorithm ring",
        "all-reduce --algorithm staged",
        "barrier --algorithm push",
        "reduce-scatter --bytes 1G --ranks 2",
        "all-to-all --buffers heap",
        "all-to-all --dtype q7",
        "all-to-all --bytes 8G",
        "barrier --from 2:S0",
        "barrier --bytes 4",
        "barrier --buffers plain",
        "barrier --dtype bf16",
        "redistribute --from 2:S0 --to 2:R --shape 4 --bytes 4",
        "all-to-all --shape 4",
        "broadcast --wire bf16",
        "cast --mode staged",
        "redistribute --from 2:S0 --to 2:R",
        "redistribute --from 2:S0 --to 2:R --shape 4xy",
        "redistribute --from 2:S1 --to 2:R --shape 4",
        "redistribute --from 2:S0 --to 2:R --shape 4 --ranks 3",
        "redistribute --from 2:S0 --to 2:R --shape 4 --wire i32",
      })
  void refusesWrongInput(String arguments) {
    assertThatThrownBy(() -> run(arguments.split(" ")))
        .isInstanceOf(InvalidArgumentException.class);
  }

  private static void checkTimes(Map<String, Object> line) {
    assertThat(line).containsKeys(FIELDS).containsEntry("verified", true);
    assertThat(number(line, "iterations")).isGreaterThanOrEqualTo(9);
    assertThat(number(line, "min_us")).isPositive().isLessThanOrEqualTo(number(line, "median_us"));
    assertThat(number(line, "median_us")).isLessThanOrEqualTo(number(line, "p99_us"));
    assertThat(number(line, "stream_us")).isPositive();
    assertThat(number(line, "empty_us")).isPositive();
  }

  private static double number(Map<String, Object> line, String field) {
    return (double) line.get(field);
  }

  @Test
  void thePageExplainsEveryColumn() throws IOException {
    String page = Files.readString(Pages.ROOT.resolve("docs/reference/command/windlass-bench.md"));
    for (String column : BenchResult.COLUMNS) {
      assertThat(page).as(column).contains("\n| `" + column + "` |");
    }
    for (String field : FIELDS) {
      if (field.endsWith("_us") || field.endsWith("GBps")) {
        assertThat(page).contains("| `" + field + "` |");
      }
    }
  }

  private static List<Map<String, Object>> bench(String... arguments) throws IOException {
    List<String> all = new ArrayList<>(List.of(arguments));
    all.add("--json");
    List<Map<String, Object>> lines = new ArrayList<>();
    for (String line : run(all.toArray(String[]::new)).split("\n")) {
      lines.add(parse(line));
    }
    return lines;
  }

  private static String run(String... arguments) {
    StringWriter out = new StringWriter();
    CommandLine command = new CommandLine(new BenchCommand());
    command.setOut(new PrintWriter(out));
    command.parseArgs(arguments);
    ((BenchCommand) command.getCommand()).run();
    return out.toString();
  }

  private static Map<String, Object> parse(String line) throws IOException {
    Map<String, Object> fields = new LinkedHashMap<>();
    try (JsonParser json = new JsonFactory().createParser(line)) {
      json.nextToken();
      while (json.nextToken() == JsonToken.FIELD_NAME) {
        String name = json.currentName();
        JsonToken value = json.nextToken();
        fields.put(
            name,
            value.isBoolean()
                ? (Object) json.getBooleanValue()
                : value.isNumeric() ? (Object) json.getDoubleValue() : json.getText());
      }
      assertThat(json.nextToken()).isNull();
    }
    return fields;
  }
}
