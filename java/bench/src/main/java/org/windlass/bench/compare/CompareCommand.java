// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Runs {@code scripts/bench}, which compares collectives of Windlass with other libraries. */
@Command(
    name = "scripts/bench",
    mixinStandardHelpOptions = true,
    description =
        "Measures Windlass, and with --peers what it is compared with, over operations, ranks and"
            + " sizes. Writes peers.csv, peers.svg and peers.md, and prints the last.")
final class CompareCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Option(
      names = "--peers",
      paramLabel = "PEER",
      split = ",",
      description = "As --peers or --peers=java,openmpi,openmpi-bound,mpich,gloo,wait: with all peers, or these.")
  private List<String> peers = List.of();

  @Option(
      names = "--launch",
      paramLabel = "LAUNCH",
      split = ",",
      defaultValue = "threads",
      description = "What Windlass's ranks are: threads, processes or both (${DEFAULT-VALUE}).")
  private List<String> launches;

  @Mixin private CellOptions cells;

  @Mixin private ComparisonOptions options;

  public static void main(String[] args) {
    ComparisonOptions.execute(new CompareCommand(), args);
  }

  @Override
  public void run() {
    List<Contender> ours = Contender.launched(launches);
    List<Contender> contenders = new ArrayList<>(ours);
    peers.forEach(name -> contenders.add(Contender.peer(name)));
    List<Row> rows =
        options.rows(
            "peers", () -> contenders.stream().distinct().toList(), cells::cells, spec.commandLine());
    List<Row> charted =
        rows.stream().filter(row -> row.contender() != Contender.WAIT).toList();
    String about =
        "Median microseconds over bytes (barrier: over ranks); window and plain are Windlass,"
            + " ranks as threads or as processes.";
    options.report("peers", Table.of(rows), Chart.of(charted, about), spec.commandLine());
    ComparisonOptions.requireMeasured(rows, ours);
  }
}
