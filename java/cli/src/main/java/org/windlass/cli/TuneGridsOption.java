// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.LocalGroup;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.sample.BenchCase;
import org.windlass.bench.sample.GridRows;
import org.windlass.bench.sample.GridTuner;
import org.windlass.bench.sample.GridTuner.Choice;
import org.windlass.bench.sample.GridTuner.Tried;
import org.windlass.bench.sample.Sampler;
import org.windlass.bench.side.Operation;
import org.windlass.bench.workload.Workload;
import org.windlass.checkpoint.FileFault;
import org.windlass.cli.out.WholeFile;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.json.JsonObject;
import org.windlass.kernel.Target;
import picocli.CommandLine.Option;

/**
 * Command-line option that makes a bench measure different grids (numbers of cores). The bench
 * prints a line for each size, and writes a table of the best grids.
 */
final class TuneGridsOption {
  static final String NAME = "--tune-grids";

  private static final String ROW = "%-14s %5s %8s %6s %10s %10s %12s%n";
  private static final String HEAD =
      String.format(ROW, (Object[]) "op,ranks,bytes,cores,median us,most cores,median us".split(","));

  /** Largest table that the library accepts, in bytes: GridTable::kMostTextBytes. */
  private static final int MOST_BYTES = 1 << 20;

  @Option(
      names = NAME,
      paramLabel = "FILE",
      description = "Collectives on cuda: write a table of the best grids.")
  private @Nullable Path file;

  boolean isGiven() {
    return file != null;
  }

  void require(Target target, String buffers, String algorithm, boolean writesStamps) {
    if (target != Target.CUDA) {
      throw new UnsupportedException(
          NAME + " measures grids of GPUs, which target " + target + " has none of: it takes"
              + " --target cuda");
    }
    if (!buffers.equals("device")) {
      throw new InvalidArgumentException(
          "--buffers " + buffers + ": " + NAME + " measures what lies on devices");
    }
    if (!algorithm.equals("auto")) {
      throw new InvalidArgumentException(
          "--algorithm " + algorithm + ": a table has rows of operations, so " + NAME
              + " takes auto");
    }
    if (writesStamps) {
      throw new InvalidArgumentException("--ops-csv: " + NAME + " writes no stamps");
    }
    present();
  }

  private Path file() {
    return Objects.requireNonNull(file);
  }

  private GridRows present() {
    Path file = file();
    if (!Files.exists(file)) {
      return GridRows.none();
    }
    // Opening or reading a pipe or a device may block forever.
    if (!Files.isRegularFile(file)) {
      throw new InvalidArgumentException(
          NAME + ": " + file + " is no regular file, which a table of grids is written as");
    }
    try (InputStream in = Files.newInputStream(file)) {
      byte[] text = in.readNBytes(MOST_BYTES + 1);
      if (text.length > MOST_BYTES) {
        throw new InvalidArgumentException(
            "it has more than " + MOST_BYTES + " bytes, which a table has at most");
      }
      return GridRows.of(new String(text, StandardCharsets.ISO_8859_1));
    } catch (IOException fault) {
      throw FileFault.reading(file, fault);
    } catch (InvalidArgumentException wrong) {
      throw new InvalidArgumentException(
          NAME + ": " + file + " exists and is not a table of grids, so it is not replaced: "
              + wrong.getMessage());
    }
  }

  /** Measures with the ranks of this process. Prints to {@code out} if rank 0 is one of them. */
  void run(
      LocalGroup group,
      Operation operation,
      List<Workload> workloads,
      Function<Workload, Sampler> samplers,
      BenchCase measured,
      boolean isJson,
      PrintWriter out) {
    boolean isFirst = group.communicators().get(0).rank() == 0;
    try (Unfinished unfinished = new Unfinished();
        WholeFile table = isFirst ? WholeFile.create(file()) : null;
        GridTuner tuner = new GridTuner(group, operation)) {
      unfinished.add(table);
      List<Choice> choices = new ArrayList<>();
      for (Workload workload : workloads) {
        Choice choice = tuner.choose(workload, samplers);
        if (isFirst) {
          out.print(
              isJson
                  ? json(measured, workload.ranks(), choice)
                  : (choices.isEmpty() ? HEAD : "") + line(operation, workload.ranks(), choice));
          out.flush();
        }
        choices.add(choice);
      }
      if (table != null) {
        GridRows rows = tuner.into(present(), choices);
        table.write(rows.text());
        table.commit();
        if (!isJson) {
          out.printf(
              "%s has %d rows; WINDLASS_CUDA_GRIDS=%s has ranks go by them on GPUs like this one: %s%n",
              file, rows.rows().size(), file, tuner.gpu());
          out.flush();
        }
      }
    }
  }

  private static String line(Operation operation, int ranks, Choice choice) {
    return String.format(
        ROW,
        operation,
        ranks,
        ByteSize.format(choice.bytes()),
        choice.chosen().cores(),
        micros(choice.chosen()),
        choice.whole().cores(),
        micros(choice.whole()));
  }

  private static String micros(Tried tried) {
    return String.format(Locale.ROOT, "%.2f", tried.medianMicros());
  }

  private static String json(BenchCase measured, int ranks, Choice choice) {
    Map<String, Object> medians = new LinkedHashMap<>();
    for (Tried tried : choice.tried()) {
      medians.put("" + tried.cores(), JsonObject.decimal(tried.medianMicros(), 2));
    }
    return JsonObject.line(
            JsonObject.of(
                "op", measured.op(),
                "target", measured.target(),
                "launch", measured.launch(),
                "buffers", measured.buffers(),
                "ranks", ranks,
                "bytes", choice.bytes(),
                "dtype", measured.dtype(),
                "cores", choice.chosen().cores(),
                "median_us_of_cores", medians))
        + "\n";
  }
}
