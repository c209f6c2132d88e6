// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.checkpoint.FileFault;
import org.windlass.checkpoint.TensorList;
import org.windlass.cli.plan.PlanPage;
import org.windlass.cli.plan.PlanReport;
import org.windlass.cli.plan.PlanRequest;
import org.windlass.cli.plan.PlannedTensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.plan.Hosts;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.PlanOptions;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Runs {@code windlass plan}: shows what a redistribution would move. */
@Command(
    name = "plan",
    customSynopsis = {
      "windlass plan [OPTIONS] --from L --to L --shape S --dtype D",
      "       windlass plan [OPTIONS] --tensors FILE"
    },
    description = "Shows what a redistribution would move, without moving it.",
    footer = {
      "  windlass plan --from 2x4:P,S0 --to 1x3@8:R,S1 --shape 4096x4096 --dtype f32",
      "  windlass plan --tensors model.json --from 8:S0 --to 4@8:S1 --html plan.html"
    })
final class PlanCommand implements Runnable {
  private static final String TAKES =
      "plan takes --from, --to, --shape and --dtype, or --tensors";

  @Spec private CommandSpec spec;

  @Mixin private LayoutOptions layouts;

  @Mixin private ModeOption mode;

  @Mixin private BucketOption bucket;

  @Option(
      names = "--shape",
      paramLabel = "SHAPE",
      description = "Global shape, such as 4096x4096. Empty for a scalar.")
  private @Nullable String shape;

  @Option(
      names = "--dtype",
      paramLabel = "DTYPE",
      completionCandidates = Choices.Dtypes.class,
      description = "Dtype of the tensor: ${COMPLETION-CANDIDATES}.")
  private @Nullable String dtype;

  @Option(
      names = "--rank",
      paramLabel = "RANK",
      description = "Plan only what this rank must know.")
  private @Nullable Integer rank;

  @Option(names = "--summary", description = "Print the sums only.")
  private boolean summary;

  @Option(
      names = "--tensors",
      paramLabel = "FILE",
      description = "JSON list of {name, shape, dtype, from?, to?, count?}.")
  private @Nullable Path tensors;

  @Option(
      names = "--ranks-per-host",
      paramLabel = "N",
      description = "Ranks of each host (default: all on one host).")
  private @Nullable Integer ranksPerHost;

  @Option(
      names = "--links",
      paramLabel = "FILE",
      description = "Predict the time from a JSON table of link speeds.")
  private @Nullable Path links;

  @Mixin private JsonOption json;

  @Option(
      names = "--html",
      paramLabel = "FILE",
      description = "Write a page that draws the layouts and the traffic.")
  private @Nullable Path html;

  @Override
  public void run() {
    Path page = html == null ? null : PlanPage.place(html);
    PlanRequest request = request();
    List<PlannedTensor> planned = tensors == null ? List.of(single()) : listed(tensors);
    requireRank(planned);
    if (page != null) {
      PlanPage.write(page, request, planned);
    }
    PlanReport report = new PlanReport(request, summary, json.isGiven());
    PrintWriter out = spec.commandLine().getOut();
    for (String line : tensors == null ? report.one(planned.get(0)) : report.list(planned)) {
      out.println(line);
    }
  }

  private void requireRank(List<PlannedTensor> planned) {
    int highest =
        planned.stream()
            .flatMap(tensor -> Stream.of(tensor.from(), tensor.to()))
            .mapToInt(layout -> layout.mesh().highestRank())
            .max()
            .orElse(Integer.MAX_VALUE);
    if (rank != null && (rank < 0 || rank > highest)) {
      throw new InvalidArgumentException(
          "--rank " + rank + " is not in 0 to " + highest + ", the highest rank of the layouts");
    }
  }

  private PlanRequest request() {
    if (ranksPerHost != null && ranksPerHost < 1) {
      throw new InvalidArgumentException(
          "--ranks-per-host " + ranksPerHost + ": a host has at least 1 rank");
    }
    Optional<Hosts> hosts = Optional.ofNullable(ranksPerHost).map(Hosts::ofEach);
    Optional<LinkSpeeds> speeds;
    try {
      speeds = links == null ? Optional.empty() : Optional.of(LinkSpeeds.read(links));
    } catch (IOException fault) {
      throw FileFault.reading(links, fault);
    }
    PlanOptions options =
        PlanOptions.defaults().withMode(mode.chosen()).withHosts(hosts.orElse(Hosts.one()));
    OptionalLong bytes = bucket.bytes();
    return new PlanRequest(
        bytes.isPresent() ? options.withBucketBytes(bytes.getAsLong()) : options,
        hosts,
        speeds,
        Optional.ofNullable(rank));
  }

  private PlannedTensor single() {
    Layout source = Layout.parse(LayoutOptions.require("--from", layouts.from(), TAKES));
    String target = LayoutOptions.require("--to", layouts.to(), TAKES);
    String extents = LayoutOptions.require("--shape", Optional.ofNullable(shape), TAKES);
    DType type = DType.parse(LayoutOptions.require("--dtype", Optional.ofNullable(dtype), TAKES));
    long[] sizes = Shape.parse(extents);
    Layout to = Layout.parseTarget(target, source);
    PlannedTensor.requireFit("", "--from " + source, source, sizes);
    PlannedTensor.requireFit("", "--to " + target, to, sizes);
    return new PlannedTensor("tensor", sizes, type, wire(type), source, to, 1);
  }

  private DType wire(DType type) {
    return layouts.castWire().filter(type::canCast).orElse(type);
  }

  private List<PlannedTensor> listed(Path tensors) {
    if (shape != null || dtype != null) {
      throw new InvalidArgumentException("--tensors gives shapes and dtypes; leave out --shape and --dtype");
    }
    List<PlannedTensor> planned = new ArrayList<>();
    for (TensorList.Entry entry : TensorList.read(tensors)) {
      planned.add(
          PlannedTensor.of(entry, layouts.from(), layouts.to(), wire(entry.dtype())));
    }
    return planned;
  }
}
