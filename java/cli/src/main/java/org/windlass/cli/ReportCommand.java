// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.json.JsonObject;
import org.windlass.report.JobReport;
import org.windlass.report.Report;
import org.windlass.report.RunningJob;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs {@code windlass report}: shows the state of every rank of a running job from outside. */
@Command(
    name = "report",
    description = "Shows what each rank of a running job does, also ranks that hang.",
    footer = {
      "  windlass report 4711 --watch",
      "  windlass report 127.0.0.1:29500"
    })
final class ReportCommand implements Callable<Integer> {
  private static final double LEAST_S = 0.01;
  private static final double MOST_S = 86_400;

  private static final String HOME = "\u001b[H";

  private static final String REST_OF_LINE = "\u001b[K";

  private static final String REST = "\u001b[J";

  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "ADDRESS",
      description = "HOST:PORT of the job, or the process id of a rank.")
  private String address;

  @Option(
      names = "--watch",
      description = "Repeat until the job is over.")
  private boolean watch;

  @Option(
      names = "--every",
      paramLabel = "S",
      defaultValue = "1",
      description = "Seconds between two reports of --watch (default: ${DEFAULT-VALUE}).")
  private double every;

  @Option(
      names = "--deadline",
      paramLabel = "S",
      defaultValue = "10",
      description = "Seconds without progress until it fails (default: ${DEFAULT-VALUE}).")
  private double deadline;

  @Mixin private JsonOption json;

  @Override
  public Integer call() throws InterruptedException {
    Duration pause = seconds("--every", every);
    Duration limit = seconds("--deadline", deadline);
    PrintWriter out = spec.commandLine().getOut();
    boolean redraws = watch && !json.isGiven() && Terminal.redraws(Terminal.OUTPUT);
    try (RunningJob job = found(limit)) {
      JobReport report = job.report();
      for (boolean isFirst = true; ; isFirst = false) {
        out.print(json.isGiven() ? json(report) + "\n" : text(report, redraws, isFirst));
        out.flush();
        if (!watch || report.isOver()) {
          break;
        }
        Thread.sleep(pause.toMillis());
        report = job.report();
      }
      return watch ? end(report, out) : 0;
    }
  }

  private RunningJob found(Duration limit) {
    try {
      return RunningJob.at(address, System.getenv(), limit);
    } catch (ResourceException e) {
      throw new ComplaintException(
          new Complaint(
              e.code(),
              e.getMessage(),
              Complaint.advice(e.getMessage())
                  .orElse(
                      "set WINDLASS_TOKEN_FILE or WINDLASS_TOKEN to that job's token; run it as"
                          + " the job's user or root"),
              e),
          e);
    }
  }

  private static Duration seconds(String name, double value) {
    if (!(value >= LEAST_S && value <= MOST_S)) {
      throw new InvalidArgumentException(
          "report: " + name + " " + value + ": not in [" + LEAST_S + ", " + (long) MOST_S + "]");
    }
    return Duration.ofNanos((long) (value * 1e9));
  }

  private int end(JobReport report, PrintWriter out) {
    String lost =
        report.communicators().stream()
            .filter(group -> !group.lost().isEmpty())
            .map(ReportCommand::lost)
            .collect(Collectors.joining("; "));
    if (!lost.isEmpty()) {
      throw new PeerLostException("report: the job is over: " + lost);
    }
    if (!json.isGiven()) {
      boolean spansHosts =
          report.communicators().stream()
              .flatMap(group -> group.report().ranks().stream())
              .anyMatch(Report.Rank::elsewhere);
      out.println(
          "the job is over: all ranks " + (spansHosts ? "of this host " : "")
              + "have closed their communicators");
    }
    return 0;
  }

  private static String lost(JobReport.Group group) {
    List<Integer> lost = group.lost();
    String named =
        lost.stream()
            .limit(8)
            .map(
                rank ->
                    rank
                        + group.report().ranks().get(rank).process()
                            .map(process -> " (process " + process.pid() + ")")
                            .orElse(""))
            .collect(Collectors.joining(", "));
    return (lost.size() == 1 ? "rank " : "ranks ") + named
        + (lost.size() > 8 ? " and " + (lost.size() - 8) + " more" : "")
        + " ended without closing communicator " + group.id()
        + group.report().failure().map(why -> ", which had failed: " + why.getMessage()).orElse("");
  }

  private static String text(JobReport report, boolean redraws, boolean isFirst) {
    String lines = report.toString().replace("\r", "") + "\n";
    if (redraws) {
      return HOME + (isFirst ? REST : "") + lines.replace("\n", REST_OF_LINE + "\n") + REST;
    }
    return (isFirst ? "" : "\n") + lines;
  }

  private static String json(JobReport report) {
    return JsonObject.line(
        JsonObject.of(
            "over", report.isOver(),
            "communicators", report.communicators().stream().map(ReportCommand::json)));
  }

  private static Map<String, Object> json(JobReport.Group group) {
    Report report = group.report();
    return JsonObject.of(
        "id", group.id(),
        "parent", group.parent().orElse(null),
        "age_us", micros(group.age()),
        "failure", report.failure().map(ReportCommand::json).orElse(null),
        "peer_memory", report.peerMemory(),
        "ranks", report.ranks().stream().map(rank -> json(group, rank)));
  }

  private static Map<String, Object> json(WindlassException failure) {
    return JsonObject.of(
        "code", failure.code(),
        "message", failure.getMessage(),
        "operation", failure.operation(),
        "ranks", failure.faultyRanks());
  }

  private static Map<String, Object> json(JobReport.Group group, Report.Rank rank) {
    Optional<Report.Process> process = rank.process();
    return JsonObject.of(
        "rank", rank.rank(),
        "parent_rank", group.parent().map(parent -> group.former().get(rank.rank())),
        "host", rank.host(),
        "elsewhere", rank.elsewhere(),
        "process", process.map(Report.Process::pid).orElse(null),
        "process_state", process.map(Report.Process::state),
        "closed", rank.closed(),
        "call", rank.recent().isEmpty() ? null : json(rank.recent().get(0), rank.elsewhere()),
        "item", rank.item().orElse(null),
        "waits_for", rank.waitsFor(),
        "contested", known(rank.elsewhere(), Integer.toUnsignedLong(rank.contested())));
  }

  private static Map<String, Object> json(Report.Call call, boolean elsewhere) {
    return JsonObject.of(
        "operation", call.operation(),
        "text", call.text(),
        "sequence", Integer.toUnsignedLong(call.sequence()),
        "inside", known(elsewhere, call.inside()),
        "failure", call.failure().orElse(null),
        "bytes", known(elsewhere, call.bytes()),
        "since_us", micros(call.since()),
        "took_us", known(elsewhere, micros(call.took())));
  }

  /** Returns the value, or null for a rank on another host, whose values are unknown. */
  private static @Nullable Object known(boolean elsewhere, Object value) {
    return elsewhere ? null : value;
  }

  private static long micros(Duration time) {
    return time.toNanos() / 1000;
  }
}
