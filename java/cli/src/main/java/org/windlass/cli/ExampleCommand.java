// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.LocalGroup;
import org.windlass.cli.out.WholeFile;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.examples.ExampleOfProcesses;
import org.windlass.examples.Examples;
import org.windlass.examples.Examples.Example;
import org.windlass.internal.Wrapped;
import org.windlass.report.KernelProfile;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs {@code windlass example}: lists the bundled examples, or runs one or all. */
@Command(
    name = "example",
    description = "Lists the bundled examples, or runs one or all of them.",
    footer = {
      "  windlass example",
      "  windlass example broadcast --ranks 4 --launch processes"
    })
final class ExampleCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Mixin private LaunchOptions moving;

  @Parameters(
      arity = "0..1",
      paramLabel = "NAME",
      completionCandidates = Choices.ExampleNames.class,
      description = "The example to run (default: list all).")
  private @Nullable String name;

  @Option(
      names = "--all",
      description = "Run all examples except torch-trainer.")
  private boolean all;

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "N",
      defaultValue = "4",
      description = "Ranks, 1 to " + RankCount.MOST + " (default: ${DEFAULT-VALUE}).")
  private int ranks;

  @Option(
      names = "--counters",
      description = "a2a3sim, a5sim: print estimated cycles by engine.")
  private boolean counters;

  @Option(
      names = "--trace",
      paramLabel = "FILE",
      description = "a2a3sim, a5sim: write a trace for Chrome or Perfetto.")
  private @Nullable Path trace;

  @Override
  public void run() {
    if (all && name != null) {
      throw new InvalidArgumentException("example: give " + name + " or --all, not both");
    }
    RankCount.require("--ranks", ranks);
    PrintWriter out = spec.commandLine().getOut();
    if (!all && name == null && (counters || trace != null)) {
      throw new InvalidArgumentException(
          "example: --counters and --trace need a run; give the name of an example, or --all");
    }
    if (!all && name == null) {
      Map<String, String> summaries = summaries();
      int width = summaries.keySet().stream().mapToInt(String::length).max().orElse(1);
      summaries.forEach(
          (each, text) ->
              out.println(Wrapped.text(String.format("%-" + width + "s  ", each), text)));
      return;
    }
    moving.target();
    Optional<ExampleOfProcesses> ofProcesses =
        all ? Optional.empty() : ExampleOfProcesses.find(name);
    if (ofProcesses.isPresent()) {
      run(ofProcesses.get(), out);
      return;
    }
    if (!counters && trace == null) {
      runChosen(out);
      return;
    }
    if (moving.areProcesses()) {
      throw new InvalidArgumentException(
          "--counters and --trace: each process has its own counters; use --launch threads");
    }
    KernelProfile.start(trace != null);
    try (Unfinished unfinished = new Unfinished();
        WholeFile file = trace == null ? null : WholeFile.create(trace)) {
      unfinished.add(file);
      runChosen(out);
      if (counters) {
        out.print(ProfileOutput.table(KernelProfile.all()));
        out.flush();
      }
      if (file != null) {
        file.write(KernelProfile.trace());
        file.commit();
      }
    }
  }

  private static Map<String, String> summaries() {
    Map<String, String> summaries = new LinkedHashMap<>();
    Examples.all().forEach(each -> summaries.put(each.name(), each.summary()));
    ExampleOfProcesses.all().forEach(each -> summaries.put(each.name(), each.summary()));
    return summaries;
  }

  private void run(ExampleOfProcesses example, PrintWriter out) {
    if (counters || trace != null) {
      throw new InvalidArgumentException(
          "--counters and --trace: " + example.name()
              + " runs processes, and each has its own counters");
    }
    Optional<String> lacking = example.lacking().get();
    if (lacking.isPresent()) {
      throw new UnsupportedException(example.name() + ": " + lacking.get());
    }
    runJobs(example.name(), example.jobs(), out);
  }

  private void runChosen(PrintWriter out) {
    List<Example> chosen = all ? Examples.all() : List.of(find(Objects.requireNonNull(name)));
    List<Example> ofJobs = chosen.stream().filter(this::isOfJobs).toList();
    if (ofJobs.size() < chosen.size()) {
      List<Example> rest = chosen.stream().filter(example -> !isOfJobs(example)).toList();
      moving.onRanks(spec, ranks, group -> run(rest, group, out));
    }
    if (!LaunchedRank.isThis()) {
      ofJobs.forEach(each -> runJobs(each.name(), each.jobs().orElseThrow(), out));
    }
  }

  private boolean isOfJobs(Example example) {
    return moving.areProcesses() && example.jobs().isPresent();
  }

  private static void runJobs(String name, Examples.Jobs jobs, PrintWriter out) {
    out.println(name + ": " + summaries().get(name));
    try (Unfinished unfinished = new Unfinished()) {
      jobs.run(stream(out), unfinished::add);
    }
  }

  private void run(List<Example> chosen, LocalGroup group, PrintWriter out) {
    boolean isFirst = group.communicators().get(0).rank() == 0;
    PrintStream stream = stream(isFirst ? out : Writer.nullWriter());
    for (Example example : chosen) {
      stream.println(example.name() + ": " + example.summary());
      example.body().run(group, ranks, stream);
      stream.flush();
    }
    out.flush();
  }

  private static Example find(String name) {
    return Examples.find(name)
        .orElseThrow(
            () ->
                new InvalidArgumentException(
                    "example '" + name + "': no such example; there are "
                        + String.join(", ", summaries().keySet())));
  }

  private static PrintStream stream(Writer out) {
    return new PrintStream(new WriterStream(out), true, StandardCharsets.UTF_8);
  }
}
