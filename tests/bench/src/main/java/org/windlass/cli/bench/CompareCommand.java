// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.windlass.InternalException;
import org.windlass.InvalidArgumentException;
import org.windlass.ResourceException;
import org.windlass.cli.Complaint;
import picocli.CommandLine;
import picocli.CommandLine.Command;
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

  @Option(
      names = "--rounds",
      paramLabel = "N",
      defaultValue = "5",
      description = "Rounds; a cell is the median of its rounds' medians (${DEFAULT-VALUE}).")
  private int rounds;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      defaultValue = "0.15",
      description = "Time for the samples of one cell by one side in one round (${DEFAULT-VALUE}).")
  private double seconds;

  @Option(
      names = "--deadline",
      paramLabel = "SECONDS",
      defaultValue = "120",
      description = "Time for one cell, after which a side is stopped there (${DEFAULT-VALUE}).")
  private double deadline;

  @Option(
      names = "--out",
      paramLabel = "FOLDER",
      description = "Where files go (the checkout's target/bench).")
  private Path out;

  @Option(
      names = "--from",
      paramLabel = "CSV",
      description = "Measures nothing: makes chart and table from this file.")
  private Path from;

  @Option(names = "--root", hidden = true, required = true, description = "The checkout.")
  private Path root;

  /** Runs the command and exits with its status. */
  public static void main(String[] args) {
    CommandLine line = new CommandLine(new CompareCommand());
    PrintWriter err = new PrintWriter(System.err, true);
    line.setErr(err);
    line.setParameterExceptionHandler((wrong, given) -> Complaint.ofUsage(wrong).print(err, false));
    line.setExecutionExceptionHandler(
        (fault, command, result) -> Complaint.of(fault).print(err, false));
    System.exit(line.execute(args));
  }

  @Override
  public void run() {
    out = out == null ? root.resolve("target/bench") : out;
    try {
      Files.createDirectories(out);
    } catch (IOException e) {
      throw new ResourceException("--out: cannot make " + out + ": " + e.getMessage(), e);
    }
    PrintWriter results = spec.commandLine().getOut();
    if (from != null) {
      results.print(report(Row.read(from)));
      results.flush();
      return;
    }
    List<Row> rows = new ArrayList<>();
    try {
      comparison()
          .run(
              all -> {
                rows.clear();
                rows.addAll(all);
                Row.write(out.resolve("peers.csv"), all);
              });
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InternalException("interrupted", e);
    }
    results.print(report(rows));
    results.flush();
    Optional<Row> failed =
        rows.stream()
            .filter(row -> Contender.OURS.contains(row.contender()) && !row.note().isEmpty())
            .findFirst();
    if (failed.isPresent()) {
      throw new InternalException(failed.get().cell() + ": " + failed.get().note());
    }
  }

  private Comparison comparison() {
    if (rounds < 1) {
      throw new InvalidArgumentException("--rounds: " + rounds + " is less than 1");
    }
    requirePositive("--seconds", seconds);
    requirePositive("--deadline", deadline);
    List<Contender> contenders = new ArrayList<>(Contender.OURS);
    peers.forEach(name -> contenders.add(Contender.peer(name)));
    return new Comparison(
        contenders.stream().distinct().toList(),
        cells(),
        rounds,
        seconds,
        Duration.ofMillis((long) (1e3 * deadline)),
        root.resolve("build/peers"),
        out,
        spec.commandLine().getErr());
  }

  private static void requirePositive(String option, double value) {
    if (!(value > 0 && value <= 3600)) {
      throw new InvalidArgumentException(option + ": " + value + " is not in (0, 3600]");
    }
  }

  private List<Cell> cells() {
    long most = ByteSize.parse(total);
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
    long size = ByteSize.parse(text);
    if (size % Float.BYTES != 0) {
      throw new InvalidArgumentException("--bytes: " + text + " is no multiple of an f32's 4");
    }
    return size;
  }

  /** Writes chart and table, and returns the table. */
  private String report(List<Row> rows) {
    String table = Table.of(rows);
    try {
      Files.writeString(out.resolve("peers.svg"), Chart.of(rows));
      Files.writeString(out.resolve("peers.md"), table);
    } catch (IOException e) {
      throw new ResourceException("--out: cannot write to " + out + ": " + e.getMessage(), e);
    }
    return table;
  }
}
