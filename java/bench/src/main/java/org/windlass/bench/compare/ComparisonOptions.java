// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.Charset;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ErrorCode;
import org.windlass.error.InternalException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import picocli.CommandLine;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Command-line options for the method of measurement and the output files of a comparison. */
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
  private @Nullable Path out;

  @Option(
      names = "--from",
      paramLabel = "CSV",
      description = "Measures nothing: makes chart and table from this file.")
  private @Nullable Path from;

  @Mixin private RootOption root;

  /** Runs {@code command}, prints its output after it has ended, and exits. */
  static void execute(Runnable command, String[] args) {
    CommandLine line = new CommandLine(command);
    PrintWriter err = new PrintWriter(System.err, true);
    StringWriter out = new StringWriter();
    line.setErr(err);
    line.setOut(new PrintWriter(out));
    line.setParameterExceptionHandler(
        (wrong, given) -> {
          String message = String.valueOf(wrong.getMessage());
          return refuse(err, new InvalidArgumentException(message, wrong));
        });
    line.setExecutionExceptionHandler(
        (fault, running, result) -> {
          if (fault instanceof WindlassException known) {
            return refuse(err, known);
          }
          throw fault;
        });
    int status = line.execute(args);
    int written = write(out.toString(), err);
    System.exit(status == 0 ? written : status);
  }

  /** Writes to standard output. A reader that has closed the pipe is no error. */
  private static int write(String text, PrintWriter err) {
    try (FileOutputStream out = new FileOutputStream(FileDescriptor.out)) {
      out.write(text.getBytes(Charset.defaultCharset()));
      return 0;
    } catch (IOException e) {
      if (!"Broken pipe".equals(e.getMessage())) {
        err.println("windlass: Resource: standard output cannot be written: " + e.getMessage());
        err.println(
            "hint: redirect it to a file system with room; files that the command wrote are"
                + " complete");
      }
      return ErrorCode.RESOURCE.exitStatus();
    }
  }

  private static int refuse(PrintWriter err, WindlassException fault) {
    err.println("windlass: " + fault.code() + ": " + fault.getMessage());
    err.println("hint: scripts/bench --help shows what it takes");
    return fault.code().exitStatus();
  }

  /** Measures, and writes NAME.csv after each round. With {@code --from}, reads rows instead. */
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
      throw new ResourceException("--out: cannot make " + folder + ": " + reason(e), e);
    }
  }

  /** Returns the reason of an I/O error, also where its message is only the file's name. */
  static String reason(IOException fault) {
    if (fault instanceof NoSuchFileException) {
      return "no such file or folder";
    }
    if (fault instanceof FileAlreadyExistsException) {
      return "it is no folder";
    }
    if (fault instanceof AccessDeniedException) {
      return "permission denied";
    }
    return String.valueOf(fault.getMessage());
  }

  void report(String name, String table, String chart, CommandLine line) {
    try {
      Files.writeString(folder().resolve(name + ".svg"), chart);
      Files.writeString(folder().resolve(name + ".md"), table);
    } catch (IOException e) {
      throw new ResourceException("--out: cannot write to " + folder() + ": " + reason(e), e);
    }
    line.getOut().print(table);
    line.getOut().flush();
  }

  /** Throws if a cell has no times from one of the contenders {@code ours}. */
  static void requireMeasured(List<Row> rows, List<Contender> ours) {
    for (Row row : rows) {
      if (ours.contains(row.contender()) && !row.note().isEmpty()) {
        throw new InternalException(row.cell() + ": " + row.note());
      }
    }
  }
}
