// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.windlass.InvalidArgumentException;
import org.windlass.cli.ByteSize;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** What {@code scripts/bench} runs. */
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
      description = "As --peers or --peers=java,openmpi,mpich,gloo: with all peers, or these.")
  private List<String> peers = List.of();

  @Option(
      names = "--ops",
      paramLabel = "OP",
      split = ",",
      defaultValue = "barrier,all-to-all,broadcast,all-gather,reduce-scatter,all-reduce",
      description = "Operations (${DEFAULT-VALUE}).")
  private List<String> ops;

  @Option(
      names = "--ranks",
      paramLabel = "N",
      split = ",",
      defaultValue = "2,4,8,16",
      description = "Numbers of ranks (${DEFAULT-VALUE}).")
  private List<Integer> ranks;

  @Option(
      names = "--bytes",
      paramLabel = "B",
      split = ",",
      defaultValue = "4,256,4K,64K,1M,16M",
      description = "Sizes, as windlass bench counts them (${DEFAULT-VALUE}).")
  private List<String> bytes;

  @Option(
      names = "--total",
      paramLabel = "B",
      defaultValue = "1G",
      description =
          "Leaves out cells whose inputs or outputs take more over all ranks (${DEFAULT-VALUE}).")
  private String total;

  @Mixin private ComparisonOptions options;

  /** Runs the command and exits with its status. */
  public static void main(String[] args) {
    ComparisonOptions.execute(new CompareCommand(), args);
  }

  @Override
  public void run() {
    List<Contender> contenders = new ArrayList<>(Contender.OURS);
    peers.forEach(name -> contenders.add(Contender.peer(name)));
    List<Row> rows =
        options.rows(
            "peers", () -> contenders.stream().distinct().toList(), this::cells, spec.commandLine());
    String about =
        "Median microseconds over bytes (barrier: over ranks); window and plain are Windlass.";
    options.report("peers", Table.of(rows), Chart.of(rows, about), spec.commandLine());
    ComparisonOptions.requireMeasured(rows, Contender.OURS);
  }

  private List<Cell> cells() {
    long most = ByteSize.parse("--total", total);
    List<Cell> cells = new ArrayList<>();
    for (String op : ops) {
      boolean barrier = op.equals(Cell.BARRIER);
      if (!barrier && Operation.named(op).isEmpty()) {
        throw new InvalidArgumentException("--ops: no operation " + op);
      }
      for (int count : ranks) {
        if (count < 1 || count > 64) {
          throw new InvalidArgumentException("--ranks: " + count + " is not in 1 to 64");
        }
        for (String size : barrier ? List.of("") : bytes) {
          cells.add(new Cell(op, count, barrier ? 0 : sizeOf(size)));
        }
      }
    }
    cells.removeIf(cell -> cell.totalBytes() > most);
    if (cells.isEmpty()) {
      throw new InvalidArgumentException("--total: no cell takes so little");
    }
    return cells.stream().distinct().sorted().collect(Collectors.toList());
  }

  private static long sizeOf(String text) {
    long size = ByteSize.parse("--bytes", text);
    if (size % Float.BYTES != 0) {
      throw new InvalidArgumentException("--bytes: " + text + " is no multiple of an f32's 4");
    }
    return size;
  }
}
