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
    description = "Shows what a redistribution would move, without moving it.",
    footer = {
      "%nA line for each route: the rank that sends, how, to whom, bytes on the wire, and which part of"
          + " the tensor, as half-open intervals.",
      "  P2P        goes to one rank",
      "  BROADCAST  goes to several",
      "  LOCAL      stays on its rank",
      "  NONE       is not sent: others read it as a term of a sum",
      "Of a source with P, a route says whose terms it reduces, as in 'sum of 0,1'. In mode direct the"
          + " targets read the terms and reduce them; in mode staged the rank that sends does.",
      "%nThe last line sums up: what is sent to other ranks; what stays local; what is read to reduce,"
          + " beside the terms that are sent; what is staged, as memory beside the tensors. Buckets are"
          + " what mode staged packs; mode direct has none.",
      "%nWith --tensors, each tensor has such lines, and the last line sums all of them; with --summary"
          + " there is the last line alone.",
      "%nWith --ranks-per-host, what is needed comes from the nearest replica, and a line for each pair"
          + " of hosts says what has to cross: what several ranks of a host need counts once.",
      "--links takes a JSON table: 'within' a host, the GB/s (10^9 bytes a second) at which its ranks get"
          + " what they need; 'between' hosts, those of each host's port each way, and 'us' until the first"
          + " byte is there; 'pairs', a list of {src, dst, GBps, us?}, those that have a link of their own."
          + " The prediction is the time of the slowest of these, were all to move at once.",
      "%n--html replaces a page that it wrote, or an empty file, and nothing else."
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
      description = "Global shape, such as 4096x4096; empty for a scalar.")
  private @Nullable String shape;

  @Option(names = "--dtype", paramLabel = "DTYPE", description = "The tensor's dtype.")
  private @Nullable String dtype;

  @Option(
      names = "--rank",
      paramLabel = "RANK",
      description = "Plan what this rank must know, and no more.")
  private @Nullable Integer rank;

  @Option(names = "--summary", description = "Leave routes and links out.")
  private boolean summary;

  @Option(
      names = "--tensors",
      paramLabel = "FILE",
      description = "A JSON list of {name, shape, dtype, from?, to?, count?}.")
  private @Nullable Path tensors;

  @Option(
      names = "--ranks-per-host",
      paramLabel = "N",
      description = "So many ranks, from 0 on, live on a host each; default all on one.")
  private @Nullable Integer ranksPerHost;

  @Option(
      names = "--links",
      paramLabel = "FILE",
      description =
          "Predict the time from a table of speeds:"
              + " {\"within\": {\"GBps\": 12}, \"between\": {\"GBps\": 3.1, \"us\": 25}}.")
  private @Nullable Path links;

  @Mixin private JsonOption json;

  @Option(
      names = "--html",
      paramLabel = "FILE",
      description =
          "Write a page with a picture: who sends what to whom, and who reads whose terms.")
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
