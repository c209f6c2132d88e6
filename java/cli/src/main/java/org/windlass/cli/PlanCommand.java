// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Layout;
import org.windlass.PlanOptions;
import org.windlass.UnsupportedException;
import org.windlass.cli.plan.PlanReport;
import org.windlass.cli.plan.PlannedTensor;
import org.windlass.cli.plan.TensorList;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code windlass plan}: what a redistribution would move. */
@Command(
    name = "plan",
    description = "Shows what a redistribution would move, without moving it.",
    footer = {
      "%nWith --tensors, each tensor's plan is one line, and the last line sums them;",
      "with --summary there is the last line alone."
    })
final class PlanCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Option(names = "--from", paramLabel = "LAYOUT", description = "Source layout.")
  private String from;

  @Option(
      names = "--to",
      paramLabel = "LAYOUT",
      description = "Target layout; without @ it follows the source's highest rank.")
  private String to;

  @Option(
      names = "--shape",
      paramLabel = "SHAPE",
      description = "Global shape, such as 4096x4096; empty for a scalar.")
  private String shape;

  @Option(names = "--dtype", paramLabel = "DTYPE", description = "The tensor's dtype.")
  private String dtype;

  @Option(
      names = "--wire",
      paramLabel = "DTYPE",
      description = "Dtype in which floating tensors cross ranks.")
  private String wire;

  @Option(
      names = "--mode",
      paramLabel = "MODE",
      defaultValue = "direct",
      description = "How bytes move: direct (${DEFAULT-VALUE}).")
  private String mode;

  @Option(
      names = "--bucket-bytes",
      paramLabel = "BYTES",
      description = "Flush threshold of buckets.")
  private Long bucketBytes;

  @Option(
      names = "--rank",
      paramLabel = "RANK",
      description = "Plan what this rank must know, and no more.")
  private Integer rank;

  @Option(names = "--summary", description = "Leave routes and links out.")
  private boolean summary;

  @Option(
      names = "--tensors",
      paramLabel = "FILE",
      description = "A JSON list of {name, shape, dtype, from?, to?, count?}.")
  private Path tensors;

  @Option(names = "--json", description = "One JSON object a line.")
  private boolean json;

  @Option(names = "--html", paramLabel = "FILE", description = "Not in this build.")
  private Path html;

  @Override
  public void run() {
    Modes.requireDirect(mode);
    if (html != null) {
      throw new UnsupportedException("--html " + html + ": not in this build");
    }
    if (rank != null && rank < 0) {
      throw new InvalidArgumentException("--rank " + rank + ": at least 0");
    }
    PlanReport report =
        new PlanReport(
            options(), rank == null ? OptionalInt.empty() : OptionalInt.of(rank), summary, json);
    PrintWriter out = spec.commandLine().getOut();
    for (String line : tensors == null ? report.one(single()) : report.list(listed())) {
      out.println(line);
    }
  }

  private PlanOptions options() {
    return bucketBytes == null
        ? PlanOptions.defaults()
        : PlanOptions.defaults().withBucketBytes(bucketBytes);
  }

  private PlannedTensor single() {
    require("--from", from);
    require("--to", to);
    require("--shape", shape);
    require("--dtype", dtype);
    Layout source = Layout.parse(from);
    DType type = DType.parse(dtype);
    return new PlannedTensor(
        "tensor",
        Shape.parse(shape),
        type,
        wire(type),
        source,
        Layout.parseTarget(to, source),
        1);
  }

  /** The wire dtype of tensors of this dtype: what was asked for if they are floating. */
  private DType wire(DType type) {
    if (wire == null) {
      return type;
    }
    DType asked = DType.parse(wire);
    return type.isFloating() && type.canCast(asked) ? asked : type;
  }

  private static void require(String option, String value) {
    if (value == null) {
      throw new InvalidArgumentException(
          option + " is missing; plan takes --from, --to, --shape and --dtype, or --tensors");
    }
  }

  private List<PlannedTensor> listed() {
    if (shape != null || dtype != null) {
      throw new InvalidArgumentException("--tensors gives shapes and dtypes; leave out --shape and --dtype");
    }
    List<PlannedTensor> planned = new ArrayList<>();
    for (TensorList.Entry entry : TensorList.read(tensors)) {
      planned.add(entry.planned(from, to, wire(entry.dtype())));
    }
    return planned;
  }
}
