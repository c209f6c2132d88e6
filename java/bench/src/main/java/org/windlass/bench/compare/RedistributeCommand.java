// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Runs {@code scripts/bench --redistribute}, which compares redistributions. */
@Command(
    name = "scripts/bench --redistribute",
    mixinStandardHelpOptions = true,
    description =
        "Measures redistributions of a square f32 matrix from 8 ranks to 8 others: Windlass direct,"
            + " staged, and gathered, then broadcast, and an MPI_Alltoallw program. Writes"
            + " redistribute.csv, redistribute.svg and redistribute.md, and prints the last.")
final class RedistributeCommand implements Runnable {
  private static final long MOST_SIDE = 16384;

  @Spec private CommandSpec spec;

  @Option(
      names = "--sides",
      paramLabel = "SIDE",
      split = ",",
      defaultValue = "direct,staged,gather-broadcast,alltoallw",
      description = "Who is measured (${DEFAULT-VALUE}).")
  private List<String> sides;

  @Option(
      names = "--meshes",
      paramLabel = "PAIR",
      split = ",",
      description = "Mesh pairs, such as 1.1.4.2-4.2.1.1 (eight of them).")
  private List<String> meshes = Redistribution.MESHES;

  @Option(
      names = "--placements",
      paramLabel = "PLACEMENTS",
      split = ",",
      description = "The source's placements, such as R.S0.R.S1 (R.S0.R.S1,R.R.R.S1,R.P.R.S1).")
  private List<String> placements = Redistribution.PLACEMENTS;

  @Option(
      names = "--dtypes",
      paramLabel = "DTYPE",
      split = ",",
      description = "The target's dtypes: f32, bf16 (both).")
  private List<String> dtypes = List.of("f32", "bf16");

  @Option(
      names = "--sizes",
      paramLabel = "N",
      split = ",",
      defaultValue = "256,512,1024,2048,4096,8192",
      description = "Rows, and as many columns (${DEFAULT-VALUE}).")
  private List<Long> sizes;

  @Mixin private ComparisonOptions options;

  public static void main(String[] args) {
    ComparisonOptions.execute(new RedistributeCommand(), args);
  }

  @Override
  public void run() {
    List<Contender> contenders =
        sides.stream().map(Contender::redistribution).distinct().sorted().toList();
    List<Row> rows =
        options.rows("redistribute", () -> contenders, this::cells, spec.commandLine());
    String about = "Median microseconds over the matrix's bytes in f32; alltoallw is Open MPI's.";
    options.report(
        "redistribute", RedistributionTable.of(rows), Chart.of(rows, about), spec.commandLine());
    List<Contender> ours =
        contenders.stream().filter(each -> each != Contender.ALLTOALLW).toList();
    ComparisonOptions.requireMeasured(rows, ours);
  }

  private List<Cell> cells() {
    List<Cell> cells = new ArrayList<>();
    for (String pair : meshes) {
      for (String placed : placements) {
        for (String dtype : dtypes) {
          Redistribution what = Redistribution.parse(pair + ":" + placed + ":" + dtype);
          if (what.targetDtype() != DType.F32 && what.targetDtype() != DType.BF16) {
            throw new InvalidArgumentException("--dtypes: " + dtype + " is neither f32 nor bf16");
          }
          for (long side : sizes) {
            ComparisonOptions.requireUpTo(MOST_SIDE, "--sizes", side);
            cells.add(what.cell(side));
          }
        }
      }
    }
    return Cell.inOrder(cells);
  }
}
