// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.windlass.error.InternalException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import picocli.CommandLine;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The options for how a comparison is measured, and for where its files go. */
final class ComparisonOptions {
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

  @Mixin private RootOption root;

  /** Runs {@code command} and exits with its status. */
  static void execute(Runnable command, String[] args) {
    CommandLine line = new CommandLine(command);
    PrintWriter err = new PrintWriter(System.err, true);
    line.setErr(err);
    line.setParameterExceptionHandler(
        (wrong, given) -> refuse(err, new InvalidArgumentException(wrong.getMessage(), wrong)));
    line.setExecutionExceptionHandler(
        (fault, running, result) -> {
          if (fault instanceof WindlassException known) {
            return refuse(err, known);
          }
          throw fault;
        });
    System.exit(line.execute(args));
  }

  /** Prints the error as the windlass command does, and gives its status. */
  private static int refuse(PrintWriter err, WindlassException fault) {
    err.println("windlass: " + fault.code() + ": " + fault.getMessage());
    err.println("hint: scripts/bench --help shows what it takes");
    return fault.code().exitStatus();
  }

  /** Measures and writes NAME.csv as rounds end, or reads the rows of {@code --from}. */
  List<Row> rows(
      String name,
      Supplier<List<Contender>> contenders,
      Supplier<List<Cell>> cells,
      CommandLine line) {
    folder();
    if (from != null) {
      return Row.read(from);
    }
    if (rounds < 1) {
      throw new InvalidArgumentException("--rounds: " + rounds + " is less than 1");
    }
    requirePositive("--seconds", seconds);
    requirePositive("--deadline", deadline);
    Comparison comparison =
        new Comparison(
            contenders.get(),
            cells.get(),
            rounds,
            seconds,
            Duration.ofMillis((long) (1e3 * deadline)),
            root.resolve("build/peers"),
            folder(),
            line.getErr());
    List<Row> rows = new ArrayList<>();
    try {
      comparison.run(
          all -> {
            rows.clear();
            rows.addAll(all);
            Row.write(folder().resolve(name + ".csv"), all);
          });
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InternalException("interrupted", e);
    }
    return rows;
  }

  /** Refuses a number of an option's that is not in 1 to {@code most}. */
  static void requireUpTo(long most, String option, long value) {
    if (value < 1 || value > most) {
      throw new InvalidArgumentException(option + ": " + value + " is not in 1 to " + most);
    }
  }

  private static void requirePositive(String option, double value) {
    if (!(value > 0 && value <= 3600)) {
      throw new InvalidArgumentException(option + ": " + value + " is not in (0, 3600]");
    }
  }

  private Path folder() {
    Path folder = out == null ? root.resolve("target/bench") : out;
    try {
      return Files.createDirectories(folder);
    } catch (IOException e) {
      throw new ResourceException("--out: cannot make " + folder + ": " + e.getMessage(), e);
    }
  }

  /** Writes NAME.svg and NAME.md, and prints the latter. */
  void report(String name, String table, String chart, CommandLine line) {
    try {
      Files.writeString(folder().resolve(name + ".svg"), chart);
      Files.writeString(folder().resolve(name + ".md"), table);
    } catch (IOException e) {
      throw new ResourceException("--out: cannot write to " + folder() + ": " + e.getMessage(), e);
    }
    line.getOut().print(table);
    line.getOut().flush();
  }

  /**
   * Throws if a cell has no times from one of {@code ours}: Windlass failed, or gave wrong bytes.
   */
  static void requireMeasured(List<Row> rows, List<Contender> ours) {
    for (Row row : rows) {
      if (ours.contains(row.contender()) && !row.note().isEmpty()) {
        throw new InternalException(row.cell() + ": " + row.note());
      }
    }
  }
}
