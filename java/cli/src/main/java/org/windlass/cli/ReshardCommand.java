// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
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
    description = "Redistributes a safetensors checkpoint from one layout to another.",
    footer = {
      "%nIN is a .safetensors file of whole tensors, a folder with",
      "model.safetensors.index.json, or a folder of rank-00000.safetensors, ... with",
      "each source rank's local tensors (layout.json may stand beside them). OUT",
      "becomes a folder of rank files and layout.json; whole tensors if it ends in",
      ".safetensors; or a folder in index form with --max-shard-bytes. It appears",
      "complete or not at all.",
      "%nWhat stands beside IN's tensors is copied into a folder if it is small and no",
      "weights: *.json, *.txt, *.model, tokenizer* and the like. The result names it,",
      "and what was left out.",
      "%nSymbolic links in IN are followed: IN itself, its files and those beside them.",
      "In the path to OUT they are followed too; an OUT that is a link is refused.",
      "%nRules are a JSON list; the first that matches a name counts, and what it leaves",
      "out comes from the defaults: match (* is any text, {n} captures text without a",
      "dot), from, to, dtype, as (a name or a list), transpose (true or an order),",
      "parts with dim (joins those captured; ranks hold their piece of each part,",
      "which may differ in extent: q, k and v of grouped queries; a part may have a",
      "layout of its own, as {\"name\": \"k\", \"to\": \"2x2:S0,R\"}), split with dim (the",
      "sizes of the parts of a fused tensor), groups and unit for both, stack (true or",
      "a dimension), pad_to (a multiple), drop (true).",
      "  [{\"match\":\"l.{n}.{p}\", \"parts\":[\"q\",\"k\",\"v\"], \"dim\":0,",
      "    \"as\":\"l.{n}.qkv\", \"to\":\"4:S0\"}]",
      "%n--launch processes has processes of this machine do the work, and writes the",
      "same bytes: one for each core, 2 to 16, whatever ranks the layouts have.",
      "%nA layout is MESH:PLACEMENT,...:",
      "  2x4:P,S0  dp=2xtp=4:R,S1  2x2@8:SS0/2,S0  4:S0*128  4@[0-1,6,4]:S0"
    })
final class ReshardCommand implements Runnable {
  private static final int FEWEST_PROCESSES = 2;

  // More processes do not read and write faster.
  private static final int MOST_PROCESSES = 16;

  /** Most warnings in the JSON result. Its count of warnings includes the others. */
  private static final int MOST_WARNINGS = 100;

  private final List<String> warned = new ArrayList<>();

  @Spec private CommandSpec spec;

  @Mixin private LaunchOptions moving;

  @Mixin private LayoutOptions layouts;

  @Option(
      names = "--mode",
      paramLabel = "MODE",
      defaultValue = "direct",
      description =
          "How bytes move: direct (${DEFAULT-VALUE}) writes values that stay as they are from the"
              + " memory into which they were read; staged moves all of them through memory in the"
              + " wire dtype. The result is equal.")
  private String mode;

  @Option(
      names = "--bucket-bytes",
      paramLabel = "BYTES",
      description =
          "Memory that a thread writes at a time, as in 4M (default 8M); the result is the same.")
  private @Nullable String bucketBytes;

  @Parameters(index = "0", paramLabel = "IN", description = "What to read.")
  private Path in;

  @Parameters(index = "1", paramLabel = "OUT", description = "What to write.")
  private Path out;

  @Option(
      names = "--dtype",
      paramLabel = "DTYPE",
      description = "Dtype in which floating tensors are written.")
  private @Nullable String dtype;

  @Option(
      names = "--ignore-scales",
      description =
          "Leave scales out of account: cast f8 tensors without theirs, and cut, join and rename"
              + " quantized tensors apart from theirs.")
  private boolean ignoreScales;

  @Option(
      names = "--rules",
      paramLabel = "FILE",
      description = "What becomes of which tensors, as below.")
  private @Nullable Path rules;

  @Option(
      names = "--max-shard-bytes",
      paramLabel = "BYTES",
      description =
          "Write the index form, with at most so many tensor bytes a file, as in 5G; a larger tensor"
              + " has one of its own.")
  private @Nullable String maxShardBytes;

  @Option(
      names = "--force",
      description =
          "Replace an existing OUT, at once, and destroy what it held: only an empty folder, or what"
              + " Windlass wrote and nobody changed.")
  private boolean force;

  @Option(
      names = "--verify",
      description = "Compare source replicas, and the result with a separate slow path.")
  private boolean verify;

  @Mixin private JsonOption json;

  @Override
  public void run() {
    // Only the process that has started the others prints messages.
    PrintWriter err =
        LaunchedRank.isThis()
            ? new PrintWriter(Writer.nullWriter())
            : spec.commandLine().getErr();
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
    // Registered until the result is printed: a signal before that is reported as one error.
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

  /** Replaces names of the library's methods in a message by the command's options. */
  private static String inOptions(String message) {
    return message
        .replaceAll("\\b(from|to|force)\\(\\)", "--$1")
        .replace("maxShardBytes()", "--max-shard-bytes")
        .replace("ignoreScales()", "--ignore-scales");
  }

  private String text(ReshardResult result, double floor) {
    return summary(result, floor) + files("copied", result.copied()) + files("left out", result.leftOut());
  }

  private static String files(String what, List<String> names) {
    return names.isEmpty() ? "" : String.format("%n%s: %s", what, String.join(", ", names));
  }

  private String summary(ReshardResult result, double floor) {
    return String.format(
        Locale.ROOT,
        "%s: %d tensors (%d defaulted), %,d bytes in, %,d bytes out, %,d sent, %,d local, in %.2f s"
            + " (%.2f GB/s; floor %.2f s)%s%s",
        out,
        result.tensors(),
        result.defaulted(),
        result.bytesIn(),
        result.bytesOut(),
        result.sentBytes(),
        result.localBytes(),
        result.seconds(),
        result.gigabytesPerSecond(),
        floor,
        result.verified() ? "; verified" : "",
        switch (warned.size()) {
          case 0 -> "";
          case 1 -> "; 1 warning";
          default -> "; " + warned.size() + " warnings";
        });
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
