// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.Algorithm;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.data.ExpertTraffic;
import org.windlass.bench.data.Sums;
import org.windlass.bench.sample.BenchCase;
import org.windlass.bench.sample.BenchResult;
import org.windlass.bench.sample.Sampler;
import org.windlass.bench.sample.Stamps;
import org.windlass.bench.side.DeviceSide;
import org.windlass.bench.side.LibrarySide;
import org.windlass.bench.side.Operation;
import org.windlass.bench.side.Side;
import org.windlass.bench.workload.AccumulateWorkload;
import org.windlass.bench.workload.BarrierWorkload;
import org.windlass.bench.workload.CastWorkload;
import org.windlass.bench.workload.CollectiveWorkload;
import org.windlass.bench.workload.DispatchCombineWorkload;
import org.windlass.bench.workload.PutWorkload;
import org.windlass.bench.workload.RedistributeWorkload;
import org.windlass.bench.workload.RoutedExchangeWorkload;
import org.windlass.bench.workload.SendReceiveWorkload;
import org.windlass.bench.workload.Workload;
import org.windlass.cli.out.WholeFile;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.report.KernelProfile;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * Runs {@code windlass bench}: samples an operation at each size and prints a line for each size.
 */
@Command(
    name = "bench",
    description = "Measures an operation, and the fastest copies of the same bytes.",
    footer = {
      "  windlass bench all-reduce --ranks 4 --bytes 4K,1M",
      "  windlass bench redistribute --from 4:S0 --to 4:S1 --shape 2048x2048"
    })
public final class BenchCommand implements Runnable {
  private static final int ROUNDS = 3;

  private static final double WARM_UP_SECONDS = 0.15;

  /**
   * Size in bytes from which on no warm-up is needed, because interpreted code then takes only a
   * small part of the time.
   */
  private static final long WARM_UP_BYTES = 1 << 20;

  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "OP",
      completionCandidates = Choices.Operations.class,
      description = "${COMPLETION-CANDIDATES}.")
  private String op;

  @Mixin private LaunchOptions moving;

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "N",
      description = "Ranks, 1 to " + RankCount.MOST + " (default: 2).")
  private @Nullable Integer ranks;

  @Option(
      names = "--bytes",
      paramLabel = "B[,B...]",
      defaultValue = "4,4K,64K,1M",
      description = "Sizes to measure (default: ${DEFAULT-VALUE}).")
  private List<String> bytes;

  @Option(
      names = "--dtype",
      paramLabel = "DTYPE",
      completionCandidates = Choices.Dtypes.class,
      description = "Dtype (default: f32, or bf16 for dispatch-combine).")
  private @Nullable String dtype;

  @Option(
      names = "--algorithm",
      paramLabel = "NAME",
      defaultValue = "auto",
      completionCandidates = Choices.Algorithms.class,
      description = "${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private String algorithm;

  @Option(
      names = "--buffers",
      paramLabel = "KIND",
      defaultValue = "window",
      completionCandidates = Choices.Buffers.class,
      description = "Memory: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private String buffers;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      defaultValue = "1",
      description = "Seconds to measure each size (default: ${DEFAULT-VALUE}).")
  private double seconds;

  @Mixin private TuneGridsOption tuning;

  @Mixin private LayoutOptions layouts;

  @Mixin private ModeOption mode;

  @Option(
      names = "--shape",
      paramLabel = "SHAPE",
      description = "redistribute: global shape, such as 4096x4096.")
  private @Nullable String shape;

  @Mixin private ExpertTrafficOptions experts;

  @Mixin private JsonOption json;

  @Option(
      names = "--ops-csv",
      paramLabel = "FILE",
      description = "Write the time stamps of all samples.")
  private @Nullable Path opsCsv;

  @Override
  public void run() {
    Target target = checkedTarget();
    BenchOperations.requireAlgorithm(op, algorithm);
    List<Workload> workloads = workloads();
    BenchOperations.requireFitting(op, spec.commandLine().getParseResult());
    BenchCase measured = new BenchCase(op, target, moving.launch(), buffers(), dtype());
    if (tuning.isGiven()) {
      tuning.require(target, buffers(), algorithm, opsCsv != null);
    }
    moving.onRanks(
        spec,
        workloads.get(0).ranks(),
        group -> {
          if (tuning.isGiven()) {
            tune(group, workloads, measured);
          } else {
            measure(group, workloads, measured);
          }
        });
  }

  private void tune(LocalGroup group, List<Workload> workloads, BenchCase measured) {
    tuning.run(
        group,
        Operation.named(op).orElseThrow(),
        workloads,
        workload -> sampler(group, workload, seconds),
        measured,
        json.isGiven(),
        spec.commandLine().getOut());
  }

  private void measure(LocalGroup group, List<Workload> workloads, BenchCase measured) {
    workloads.stream()
        .filter(each -> each.bytes() <= WARM_UP_BYTES)
        .findFirst()
        .ifPresent(each -> sampler(group, each, Math.min(seconds, WARM_UP_SECONDS)).warmUp());
    if (group.communicators().get(0).rank() > 0) {
      workloads.forEach(workload -> sampler(group, workload, seconds).run());
      return;
    }
    PrintWriter out = spec.commandLine().getOut();
    String head = "";
    boolean counts = ProfileOutput.counts(measured.target()) && !moving.areProcesses();
    StringBuilder profiles = new StringBuilder();
    try (Unfinished unfinished = new Unfinished();
        WholeFile stamps = opsCsv == null ? null : WholeFile.create(opsCsv)) {
      unfinished.add(stamps);
      if (stamps != null) {
        stamps.write("op,bytes,batch,iteration,rank,ready_ns,leave_ns\n");
      }
      for (Workload workload : workloads) {
        if (counts) {
          KernelProfile.start(false);
        }
        Sampler.Measurement measurement = sampler(group, workload, seconds).run();
        if (counts) {
          profiles.append(profile(workload.bytes()));
        }
        BenchResult result = new BenchResult(measured, workload, measurement);
        if (!json.isGiven() && !result.tableHead().equals(head)) {
          head = result.tableHead();
          out.print(head);
        }
        out.print(json.isGiven() ? result.toJson() + "\n" : result.toTableRow());
        out.flush();
        if (stamps != null) {
          write(stamps, op + "," + workload.bytes(), measurement.batches());
        }
      }
      out.print(profiles);
      out.flush();
      if (stamps != null) {
        stamps.commit();
      }
    }
  }

  private static void write(WholeFile file, String cell, List<Stamps> batches) {
    for (int batch = 0; batch < batches.size(); batch++) {
      Stamps stamps = batches.get(batch);
      for (int i = 0; i < stamps.iterations(); i++) {
        for (int rank = 0; rank < stamps.ranks(); rank++) {
          file.write(
              cell + "," + batch + "," + i + "," + rank + "," + stamps.ready(rank, i) + ","
                  + stamps.leave(rank, i) + "\n");
        }
      }
    }
  }

  private String profile(long bytes) {
    List<KernelProfile> kernels = KernelProfile.all();
    if (!json.isGiven()) {
      return String.format("%nkernels at %s%n", ByteSize.format(bytes))
          + ProfileOutput.table(kernels);
    }
    return kernels.stream()
        .map(kernel -> ProfileOutput.json(kernel, bytes) + "\n")
        .collect(Collectors.joining());
  }

  private static Sampler sampler(LocalGroup group, Workload workload, double seconds) {
    return new Sampler(group, workload, NativeLibrary.allowedCores(), seconds, ROUNDS);
  }

  private Target checkedTarget() {
    BenchOperations.requireOneOf("--buffers", buffers(), BenchOperations.BUFFERS);
    if (isOnDevices() && !tuning.isGiven() && Operation.named(op).isEmpty()) {
      throw new UnsupportedException(
          "bench " + op + ": --buffers device is for " + Stream.of(Operation.values())
              .map(Operation::toString).collect(Collectors.joining(", ")));
    }
    mode.chosen();
    RankCount.require("--ranks", ranks());
    if (!(seconds > 0 && seconds <= 3600)) {
      throw new InvalidArgumentException("--seconds: " + seconds + " is not in (0, 3600]");
    }
    Target target = moving.target();
    if (op.equals("cast") && target != Target.SIM) {
      throw new UnsupportedException(
          "bench cast measures Tensor.copyFrom, which this processor runs for every target:"
              + " use --target sim instead of " + target);
    }
    return target;
  }

  private List<Workload> workloads() {
    DType type = dtype();
    Side side =
        isOnDevices() ? new DeviceSide(algorithm()) : new LibrarySide(algorithm(), isPlain());
    Optional<Operation> collective = Operation.named(op);
    if (collective.isPresent()) {
      requireVerifiable(type);
      return sized(type, b -> new CollectiveWorkload(side, collective.get(), ranks(), b, type));
    }
    return switch (op) {
      case "barrier" -> List.of(new BarrierWorkload(side, ranks()));
      case "put" -> sized(type, b -> new PutWorkload(ranks(), b, type, isPlain()));
      case "send-receive" ->
          sized(type, b -> new SendReceiveWorkload(ranks(), b, type, isPlain()));
      case "accumulate" ->
          sized(type, b -> new AccumulateWorkload(ranks(), b, type, isPlain()));
      case "cast" ->
          sized(type, b -> new CastWorkload(ranks(), b, type, wireOr(DType.BF16), isPlain()));
      case "redistribute" -> List.of(redistribute(type));
      case "dispatch-combine" -> {
        ExpertTraffic traffic = experts.traffic(ranks(), type);
        yield List.of(
            new DispatchCombineWorkload(traffic, isPlain()), new RoutedExchangeWorkload(traffic, isPlain()));
      }
      default ->
          throw new InvalidArgumentException(
              "bench '" + op + "': no such operation; there are " + BenchOperations.ALL);
    };
  }

  /**
   * Throws if the sums of {@code type} are not exact and the ring is chosen, which adds in another
   * order.
   */
  private void requireVerifiable(DType type) {
    boolean ring = algorithm() == Algorithm.RING || algorithm() == Algorithm.BIDIRECTIONAL_RING;
    if (ring && !new Sums(type, ranks()).areExact()) {
      throw new UnsupportedException(
          "bench all-reduce: a " + algorithm() + " of " + ranks() + " ranks rounds sums of " + type
              + " on the way, which a bench can't verify; take fewer ranks or a wider dtype");
    }
  }

  private List<Workload> sized(DType type, LongFunction<Workload> workload) {
    if (type.bits() < 8) {
      throw new UnsupportedException(
          "--dtype " + type + ": its elements are less than a byte, which a bench does not move");
    }
    List<Workload> workloads = new ArrayList<>();
    for (String text : sizes()) {
      long size = ByteSize.parse("--bytes", text);
      if (size % type.bytes() != 0) {
        throw new InvalidArgumentException(
            "--bytes: " + text + " is no multiple of the " + type.bytes() + " bytes of a " + type);
      }
      workloads.add(workload.apply(size));
    }
    return workloads;
  }

  private List<String> sizes() {
    List<String> sizes = new ArrayList<>();
    for (String list : bytes) {
      for (String size : list.split(",", -1)) {
        if (size.isEmpty()) {
          throw new InvalidArgumentException(
              "--bytes: '" + list + "' has an empty size; write sizes as in 4,64K,1M");
        }
        sizes.add(size);
      }
    }
    return sizes;
  }

  private Workload redistribute(DType type) {
    if (layouts.from().isEmpty() || layouts.to().isEmpty() || shape == null) {
      throw new InvalidArgumentException("bench redistribute: give --from, --to and --shape");
    }
    if (!type.canCast(wireOr(type))) {
      throw new InvalidArgumentException("--wire " + wireOr(type) + ": " + type + " is not cast to it");
    }
    Layout source = Layout.parse(layouts.from().get());
    Layout target = Layout.parseTarget(layouts.to().get(), source);
    if (target.hasPartial()) {
      throw new InvalidArgumentException("--to " + layouts.to().get() + ": a target cannot be Partial");
    }
    Workload workload =
        new RedistributeWorkload(
            TensorSpec.of("bench", type, source, Shape.parse(shape)),
            TensorSpec.of("bench", type, target, Shape.parse(shape)),
            wireOr(type),
            mode.chosen(),
            isPlain(),
            moving.deadline());
    RankCount.require("bench redistribute: the ranks of the layouts,", workload.ranks());
    if (ranks != null && ranks != workload.ranks()) {
      throw new InvalidArgumentException(
          "--ranks: " + ranks + ", but the layouts have " + workload.ranks());
    }
    return workload;
  }

  private DType dtype() {
    String byDefault = op.equals("dispatch-combine") ? "bf16" : "f32";
    return DType.parse(dtype == null ? byDefault : dtype);
  }

  private int ranks() {
    return ranks == null ? 2 : ranks;
  }

  private String buffers() {
    boolean isGiven = spec.commandLine().getParseResult().hasMatchedOption("--buffers");
    return tuning.isGiven() && !isGiven ? "device" : buffers;
  }

  private boolean isPlain() {
    return buffers().equals("plain");
  }

  private boolean isOnDevices() {
    return buffers().equals("device");
  }

  private DType wireOr(DType otherwise) {
    return layouts.wire().orElse(otherwise);
  }

  private Algorithm algorithm() {
    return Algorithm.parse(algorithm);
  }
}
