// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Scanner;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.InvalidArgumentException;

/** From the name of a redistribution to what the MPI program reads, and to table and chart. */
class RedistributionTest {
  private static final String ROWS =
      """
      op,ranks,bytes,side,rounds,median_us,p99_us,min_us,stream_us,empty_us,floor_us,empty_p99_us,note
      1.1.4.2-4.2.1.1:R.S0.R.S1:bf16,16,262144,direct,5,100,0,0,0,0,50,0,
      1.1.4.2-4.2.1.1:R.S0.R.S1:bf16,16,262144,gather-broadcast,5,500,0,0,0,0,50,0,
      1.1.4.2-4.2.1.1:R.S0.R.S1:bf16,16,262144,alltoallw,5,600,0,0,0,0,50,0,
      1.1.4.2-4.2.1.1:R.S0.R.S1:bf16,16,1048576,direct,5,400,0,0,0,0,200,0,
      1.1.4.2-4.2.1.1:R.S0.R.S1:bf16,16,1048576,gather-broadcast,5,800,0,0,0,0,200,0,
      1.1.4.2-4.2.1.1:R.S0.R.S1:bf16,16,1048576,alltoallw,0,NaN,NaN,NaN,NaN,NaN,200,NaN,deadline
      """;

  @TempDir private Path folder;

  static List<String> names() {
    return Redistribution.MESHES.stream()
        .flatMap(
            meshes ->
                Redistribution.PLACEMENTS.stream()
                    .map(placements -> meshes + ":" + placements + ":bf16"))
        .toList();
  }

  @Test
  void aNameReadsBack() {
    Redistribution parsed = Redistribution.parse("8.1.1.1-1.2.2.2:R.P.R.S1:bf16");
    assertThat(parsed).hasToString("8.1.1.1-1.2.2.2:R.P.R.S1:bf16");
    assertThat(parsed.source()).hasToString("8x1x1x1:R,P,R,S1");
    assertThat(parsed.target().qualified()).isEqualTo("1x2x2x2@8:R,R,SS0/2,S0");
    assertThat(parsed.ranks()).isEqualTo(16);
    assertThat(parsed.cell(512)).isEqualTo(new Cell(parsed.toString(), 16, 1 << 20));
    assertThat(Redistribution.shape(1 << 20)).containsExactly(512, 512);
    // Two replicas of a half each on four ranks: the tensor twice, 2 bytes an element.
    assertThat(parsed.targetBytes(1 << 20)).isEqualTo(2 * 512 * 512 * 2);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"all-to-all", "8-8:R", "8:R:f32", "8.x-8:R.R:f32", "2-2:S7:f32", "2.2-2.2:R.R:f99"})
  void whatIsNoNameIsRefused(String name) {
    assertThatThrownBy(() -> Redistribution.parse(name))
        .isInstanceOf(InvalidArgumentException.class);
  }

  @Test
  void sidesAreNotPeers() {
    assertThat(Contender.redistribution("gather-broadcast")).isEqualTo(Contender.GATHER_BROADCAST);
    assertThat(Contender.parse("gather-broadcast")).isEqualTo(Contender.GATHER_BROADCAST);
    assertThatThrownBy(() -> Contender.redistribution("java"))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> Contender.peer("direct")).isInstanceOf(InvalidArgumentException.class);
    Cell partial = Redistribution.parse("8.1.1.1-1.2.2.2:R.P.R.S1:f32").cell(64);
    assertThat(Contender.ALLTOALLW.has(partial)).isFalse();
    assertThat(Contender.STAGED.has(partial)).isTrue();
  }

  /** Carries the plan out on global indices: each target element arrives once, from its source. */
  @ParameterizedTest
  @MethodSource("names")
  void movesGiveEachTargetItsElements(String name) {
    Redistribution what = Redistribution.parse(name);
    Scanner plan = new Scanner(ExchangePlan.text(what, 40 * 40 * 4));
    int ranks = plan.nextInt();
    int columns = plan.nextInt();
    assertThat(List.of(ranks, columns, plan.nextInt(), plan.nextInt()))
        .containsExactly(16, 40, 6400, 1);
    int[][][] sources = new int[ranks][][];
    int[][][] targets = new int[ranks][][];
    for (int rank = 0; rank < ranks; rank++) {
      sources[rank] = local(plan, columns);
      targets[rank] = local(plan, columns);
      assertThat(sources[rank].length == 0).isEqualTo(rank >= 8);
      assertThat(targets[rank].length == 0).isEqualTo(rank < 8);
    }
    for (int left = plan.nextInt(); left > 0; left--) {
      int[][] source = sources[plan.nextInt()];
      int[][] target = targets[plan.nextInt()];
      int[] box = new int[6];
      Arrays.setAll(box, i -> plan.nextInt());
      for (int r = 0; r < box[0]; r++) {
        for (int c = 0; c < box[1]; c++) {
          // Of a target there is left what has not arrived.
          int expected = target[box[4] + r][box[5] + c];
          assertThat(source[box[2] + r][box[3] + c]).isEqualTo(expected).isNotNegative();
          target[box[4] + r][box[5] + c] = -1;
        }
      }
    }
    assertThat(plan.hasNext()).isFalse();
    for (int[][] target : targets) {
      assertThat(Arrays.stream(target).flatMapToInt(Arrays::stream)).allMatch(each -> each == -1);
    }
  }

  /** A rank's matrix, with the global index of each element. */
  private static int[][] local(Scanner plan, int columns) {
    int[][] local = new int[plan.nextInt()][plan.nextInt()];
    for (int[] row : local) {
      Arrays.fill(row, -2);
    }
    for (int left = plan.nextInt(); left > 0; left--) {
      int[] box = new int[6];
      Arrays.setAll(box, i -> plan.nextInt());
      for (int r = 0; r < box[2]; r++) {
        for (int c = 0; c < box[3]; c++) {
          local[box[4] + r][box[5] + c] = (box[0] + r) * columns + box[1] + c;
        }
      }
    }
    return local;
  }

  @Test
  void theTableGivesThroughputsAndRatios() throws IOException {
    String table = RedistributionTable.of(rows());
    // Eight targets hold all of 256 x 256 elements of 2 bytes: 1,048,576 bytes.
    assertThat(table)
        .contains("| GB/s, direct (the floor's) | ranks | 256K | 1M |")
        .contains("| 1.1.4.2-4.2.1.1:R.S0.R.S1:bf16 | 16 | 10.5 (21.0) | 10.5 (21.0) |")
        .contains("| Direct, times gather-broadcast | ranks | 256K | 1M |")
        .contains("| 1.1.4.2-4.2.1.1:R.S0.R.S1:bf16 | 16 | 5.00 | 2.00 |")
        .contains("3.16 times as fast as gather-broadcast in the geometric mean over 2 cells")
        .contains("at least 2.00 (1.1.4.2-4.2.1.1:R.S0.R.S1:bf16, 16 ranks, 1M); in 1 cells 4 or")
        .contains("6.00 times as fast as alltoallw in the geometric mean over 1 cells")
        .contains("- 1.1.4.2-4.2.1.1:R.S0.R.S1:bf16, 16 ranks, 1M, alltoallw: deadline")
        .doesNotContain("staged")
        .doesNotContain("NaN");
  }

  @Test
  void theChartHasAPanelForEachRedistribution() throws IOException {
    String chart = Chart.of(rows(), "About.");
    assertThat(chart.lines().filter(line -> line.startsWith("<polyline"))).hasSize(4);
    assertThat(chart).contains("About.").contains(">1.1.4.2-4.2.1.1:R.S0.R.S1:bf16<");
  }

  private List<Row> rows() throws IOException {
    return Row.read(Files.writeString(folder.resolve("in.csv"), ROWS));
  }
}
