// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.windlass.bench.data.ByteSize;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonObject;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.Reshard;
import org.windlass.reshard.ReshardResult;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs {@code windlass reshard}: redistributes safetensors. */
@Command(
    name = "reshard",
    customSynopsis = "windlass reshard [OPTIONS] --from L --to L IN OUT",
    description = "Redistributes a safetensors checkpoint from one layout to another.",
    footer = {
      "  windlass reshard --from 2x4:P,S0 --to 1x3@8:R,S1 IN OUT --dtype bf16 --verify",
      "  windlass reshard --rules rules.json --to 4:S0 IN OUT"
    })
final class ReshardCommand implements Runnable {
  private static final int FEWEST_PROCESSES = 2;

  // More processes do not read and write faster.
  private static final int MOST_PROCESSES = 16;

  /**
   * Largest number of warnings in the JSON result. The count of warnings in the result includes the
   * others.
   */
  private static final int MOST_WARNINGS = 100;

  private final List<String> warned = new ArrayList<>();

  @Spec private CommandSpec spec;

  @Mixin private LaunchOptions moving;

  @Mixin private LayoutOptions layouts;

  @Option(
      names = "--mode",
      paramLabel = "MODE",
      defaultValue = "direct",
      completionCandidates = Choices.FileModes.class,
      description = "How bytes move: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private String mode;

  @Option(
      names = "--bucket-bytes",
      paramLabel = "B",
      description = "Bytes that a thread writes at a time (default: 8M).")
  private @Nullable String bucketBytes;

  @Parameters(
      index = "0",
      paramLabel = "IN",
      description = "Checkpoint to read: a .safetensors file or a folder.")
  private Path in;

  @Parameters(
      index = "1",
      paramLabel = "OUT",
      description = "Checkpoint to write. It appears complete or not at all.")
  private Path out;

  @Option(
      names = "--dtype",
      paramLabel = "DTYPE",
      completionCandidates = Choices.Floats.class,
      description = "Dtype of floating tensors in OUT: ${COMPLETION-CANDIDATES}.")
  private @Nullable String dtype;

  @Option(
      names = "--ignore-scales",
      description = "Cast, cut and join quantized tensors without their scales.")
  private boolean ignoreScales;

  @Option(
      names = "--rules",
      paramLabel = "FILE",
      description = "JSON list of rules for single tensors.")
  private @Nullable Path rules;

  @Option(
      names = "--max-shard-bytes",
      paramLabel = "B",
      description = "Write the index form, with files of at most this size.")
  private @Nullable String maxShardBytes;

  @Option(
      names = "--force",
      description = "Destroy and replace an OUT that is empty, or unchanged output of Windlass.")
  private boolean force;

  @Option(
      names = "--verify",
      description = "Check replicas of IN and every byte of OUT.")
  private boolean verify;

  @Mixin private JsonOption json;

  @Override
  public void run() {
    PrintWriter err = Main.notes(spec);
    Reshard reshard =
        layouts
            .from()
            .map(Layout::parse)
            .map(Reshard::from)
            .orElseGet(Reshard::fromStoredLayouts)
            .in(in)
            .out(out)
            .mode(ModeOption.parse(mode, TransferMode.DIRECT, TransferMode.STAGED))
            .target(moving.target())
            .deadline(moving.deadline())
            .warnings(text -> warn(err, inOptions(text)));
    layouts.to().ifPresent(reshard::to);
    layouts.castWire().ifPresent(reshard::wire);
    LayoutOptions.castable("--dtype", dtype).ifPresent(reshard::dtype);
    Optional.ofNullable(rules).ifPresent(reshard::rules);
    LayoutOptions.bytes("--bucket-bytes", bucketBytes).ifPresent(reshard::bucketBytes);
    LayoutOptions.bytes("--max-shard-bytes", maxShardBytes).ifPresent(reshard::maxShardBytes);
    if (force) {
      reshard.force();
    }
    if (verify) {
      reshard.verify();
    }
    if (ignoreScales) {
      reshard.ignoreScales();
    }
    // Registered until the result is printed: if a signal arrives before that, only the signal is
    // reported.
    try (Unfinished unfinished = new Unfinished()) {
      ReshardResult result = run(reshard, unfinished, err);
      if (LaunchedRank.isThis()) {
        return;
      }
      double floor = ReshardFloor.seconds(result.casts());
      PrintWriter printer = spec.commandLine().getOut();
      printer.println(json.isGiven() ? json(result, floor) : text(result, floor));
      printer.flush();
      unfinished.finish();
    }
  }

  private ReshardResult run(Reshard reshard, Unfinished unfinished, PrintWriter err) {
    try (ProgressBar bar = ProgressBar.on(err)) {
      unfinished.add(bar);
      unfinished.add(out, reshard::cancel);
      reshard.progress(bar);
      return moving.areProcesses() ? runProcesses(reshard, err) : reshard.run();
    } catch (InvalidArgumentException refused) {
      throw new InvalidArgumentException(inOptions(refused.getMessage()), refused);
    }
  }

  private ReshardResult runProcesses(Reshard reshard, PrintWriter err) {
    int cores = Runtime.getRuntime().availableProcessors();
    int processes = Math.max(FEWEST_PROCESSES, Math.min(cores, MOST_PROCESSES));
    // Refuse invalid requests before any process starts.
    reshard.check();
    AtomicReference<ReshardResult> result = new AtomicReference<>();
    try {
      moving.onProcesses(spec, processes, 1, group -> result.set(reshard.run(group)));
    } catch (RuntimeException failure) {
      if (result.get() == null) {
        throw failure;
      }
      warn(err, "OUT was complete when " + failure.getMessage());
    }
    return Objects.requireNonNull(result.get());
  }

  private void warn(PrintWriter err, String text) {
    warned.add(text);
    err.println("windlass: warning: " + text);
  }

  /**
   * Replaces the names of the library's methods in a message by the names of the command's options.
   */
  private static String inOptions(String message) {
    return message
        .replaceAll("\\b(from|to|force)\\(\\)", "--$1")
        .replace("maxShardBytes()", "--max-shard-bytes")
        .replace("ignoreScales()", "--ignore-scales");
  }

  private String text(ReshardResult result, double floor) {
    return files("copied", result.copied())
        + files("left out", result.leftOut())
        + summary(result, floor);
  }

  private static String files(String what, List<String> names) {
    return names.isEmpty() ? "" : String.format("%s: %s%n", what, String.join(", ", names));
  }

  private String summary(ReshardResult result, double floor) {
    return String.format(
        Locale.ROOT,
        "%d %s%s: %s in, %s out; %s between ranks, %s local%n"
            + "%s, %s/s; a copy in memory takes %s%n"
            + "%s: complete, %s%s",
        result.tensors(),
        result.tensors() == 1 ? "tensor" : "tensors",
        result.defaulted() == 0 ? "" : ", " + result.defaulted() + " with default layouts",
        ByteSize.rounded(result.bytesIn()),
        ByteSize.rounded(result.bytesOut()),
        ByteSize.rounded(result.sentBytes()),
        ByteSize.rounded(result.localBytes()),
        time(result.seconds()),
        ByteSize.rounded((long) (result.gigabytesPerSecond() * 1e9)),
        time(floor),
        out,
        result.verified() ? "verified" : "not verified",
        switch (warned.size()) {
          case 0 -> "";
          case 1 -> "; 1 warning";
          default -> "; " + warned.size() + " warnings";
        });
  }

  /** Returns a time in a unit of which it has at least a tenth, since 0.00 s says nothing. */
  static String time(double seconds) {
    if (seconds == 0) {
      return "0 s";
    }
    if (seconds >= 0.1) {
      return String.format(Locale.ROOT, "%.2f s", seconds);
    }
    return seconds >= 1e-4
        ? String.format(Locale.ROOT, "%.2f ms", seconds * 1e3)
        : String.format(Locale.ROOT, "%.2f us", seconds * 1e6);
  }

  private String json(ReshardResult result, double floor) {
    return JsonObject.line(
        JsonObject.of(
            "tensors", result.tensors(),
            "defaulted", result.defaulted(),
            "bytes_in", result.bytesIn(),
            "bytes_out", result.bytesOut(),
            "sent_bytes", result.sentBytes(),
            "local_bytes", result.localBytes(),
            "seconds", JsonObject.decimal(result.seconds(), 6),
            "GBps", JsonObject.decimal(result.gigabytesPerSecond(), 6),
            "floor_s", JsonObject.decimal(floor, 6),
            "verified", result.verified(),
            "copied", result.copied(),
            "left_out", result.leftOut(),
            "warning_count", warned.size(),
            "warnings", warned.stream().limit(MOST_WARNINGS)));
  }
}
